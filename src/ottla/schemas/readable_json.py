"""Whether a payload is JSON that is valid by a schema (by `jsonschema`, within bounds) and that readers can read.

Rules:
- `columns.json` can read every accepted payload by the same schema: text of RFC 8259, integers of 64 bits, numbers that
  fit a double, valid times and base64. Schemas without columns (recursive ones) have no such readers.
- Work is bounded by the payload's size: every keyword costs steps, and a payload that needs more is refused. (Schemas
  can refer to their parts twice, thirty times over: that is 2^30 keywords for one number.)
- Patterns run on the bounded engine (`model.re2`), and uniqueness of items is checked by hashing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ottla.model.limits import JSON_STEPS_MIN, JSON_STEPS_PER_BYTE_MAX, SCHEMAS_PARSED_REMEMBERED
from ottla.model.re2.match import Search, pattern_of
from ottla.schemas.json.fit import Check, Unfit, check_of
from ottla.schemas.json.payload import NotJson, parse
from ottla.schemas.json.shapes import shape_of
from ottla.schemas.schema import InvalidSchema, SchemaSource, UnsupportedSchema

# So many entries of a keyword's list or object cost one step: most of them are a single look-up.
_ENTRIES_PER_STEP = 16


class _TooMuch(Exception):
    """The payload needs more work than its size allows."""


class JsonPayloads:
    """Checks payloads of one schema. Raises InvalidSchema if nothing can be checked by it."""

    def __init__(self, source: SchemaSource) -> None:
        from jsonschema import validators
        from jsonschema.exceptions import best_match
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT7

        self._steps_left = 0
        self._worst = best_match
        try:
            schema = json.loads(source.text)
            kind = validators.validator_for(schema, default=validators.Draft7Validator)
            resources = [
                (name, Resource.from_contents(json.loads(text), default_specification=DRAFT7))
                for name, text in source.resolved.items()
            ]
            keywords = {**kind.VALIDATORS, **_OWN}
            bounded = validators.extend(kind, {name: self._counted(keyword) for name, keyword in keywords.items()})
            registry: Registry[Any] = Registry().with_resources(resources)
            self._validator = bounded(schema, registry=registry)
        except Exception as error:  # a schema can be invalid in many ways, and the library has an exception for each
            raise InvalidSchema(f"{type(error).__name__} {error}") from error
        self._fits = _fits(source)

    def why_unreadable(self, payload: bytes) -> str | None:
        """Return why the payload is refused; None if it is accepted."""
        try:
            value = parse(payload)
            self._fits(value)
        except NotJson as error:
            return f"the payload is not JSON: {error}"
        except Unfit as error:
            return str(error)
        self._steps_left = max(len(payload) * JSON_STEPS_PER_BYTE_MAX, JSON_STEPS_MIN)
        try:
            worst = self._worst(self._validator.iter_errors(value))
        except _TooMuch:
            return "the payload could not be checked: the schema asks for more work than its size is worth"
        except Exception as problem:  # the schema is invalid
            return f"the payload could not be checked: {type(problem).__name__} {problem}"
        return None if worst is None else f"{worst.message} (at {worst.json_path})"

    def _counted(self, keyword: Callable[..., Any]) -> Callable[..., Any]:
        def check(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
            self._steps_left -= 1
            if isinstance(wanted, list | dict):
                self._steps_left -= len(wanted) // _ENTRIES_PER_STEP
            if self._steps_left < 0:
                raise _TooMuch
            return keyword(validator, wanted, instance, schema)

        return check


def _fits(source: SchemaSource) -> Check:
    try:
        return check_of(shape_of(source))
    except (InvalidSchema, UnsupportedSchema):  # the schema has no columns
        return lambda value: None


@lru_cache(SCHEMAS_PARSED_REMEMBERED)
def _matching(text: str) -> Search:
    return Search(pattern_of(f"(?s:.*)(?:{text})(?s:.*)"))  # JSON Schema's patterns may match anywhere


def _pattern(validator: Any, text: str, instance: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(instance, "string") and not _matching(text).matches(instance):
        yield ValidationError(f"{instance!r} does not match {text!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    for text, subschema in patterns.items():
        pattern = _matching(text)
        for name, value in instance.items():
            if pattern.matches(name):
                yield from validator.descend(value, subschema, path=name, schema_path=text)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not validator.is_type(instance, "object"):
        return
    known = schema.get("properties", {})
    patterns = [_matching(text) for text in schema.get("patternProperties", {})]
    extras = [name for name in instance if name not in known and not any(each.matches(name) for each in patterns)]
    if validator.is_type(allowed, "object"):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        shown = ", ".join(map(repr, extras[:3]))
        yield ValidationError(f"Additional properties are not allowed: {shown}")


def _unique_items(validator: Any, wanted: Any, instance: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if wanted and validator.is_type(instance, "array") and len({_hashable(each) for each in instance}) < len(instance):
        yield ValidationError("the items are not unique")


def _hashable(value: Any) -> Any:
    """Return a key that is equal for equal JSON: 1 equals 1.0, but not true."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return ("object", frozenset((name, _hashable(each)) for name, each in value.items()))
    return ("array", tuple(map(_hashable, value))) if isinstance(value, list) else value


_OWN = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
