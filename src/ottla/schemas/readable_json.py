"""Whether a payload is JSON that is valid by a schema (by `jsonschema`, within bounds) and that readers can read.

Rules:
- `columns.json` can read every accepted payload by the same schema: text of RFC 8259, integers of 64 bits, numbers that
  fit a double, valid times and base64. Schemas without columns (recursive ones) have no such readers.
- Work is bounded by the payload's size: every keyword costs steps, and a payload that needs more is refused. (Schemas
  can refer to their parts twice, thirty times over: that is 2^30 keywords for one number.)
- Patterns run on the bounded engine (`model.re2`), with an allowance of work for each payload, and uniqueness of items
  is checked by hashing. Making the patterns of a schema, and running them for the first times, costs more: for this a
  schema has an allowance that is used up once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ottla.model.limits import (
    JSON_PATTERN_WORK_FIRST,
    JSON_PATTERN_WORK_MIN,
    JSON_PATTERN_WORK_PER_BYTE_MAX,
    JSON_STEPS_MIN,
    JSON_STEPS_PER_BYTE_MAX,
    REGEX_WORK_MAX,
)
from ottla.model.re2.match import Allowance, TooDear
from ottla.schemas.json.fit import Check, Unfit, check_of
from ottla.schemas.json.payload import NotJson, parse
from ottla.schemas.json.shapes import shape_of
from ottla.schemas.json.unevaluated import JsonValidator, Unevaluated
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
        self._first_work = JSON_PATTERN_WORK_FIRST
        self._patterns = Allowance(0)
        self._worst = best_match
        try:
            schema = json.loads(source.text)
            kind = validators.validator_for(schema, default=validators.Draft7Validator)
            resources = [
                (name, Resource.from_contents(json.loads(text), default_specification=DRAFT7))
                for name, text in source.resolved.items()
            ]
            own = {name: each for name, each in self._own_keywords().items() if name in kind.VALIDATORS}
            keywords = {**kind.VALIDATORS, **own}
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
        own_work = max(len(payload) * JSON_PATTERN_WORK_PER_BYTE_MAX, JSON_PATTERN_WORK_MIN)
        self._patterns.left = min(own_work, REGEX_WORK_MAX) + self._first_work
        try:
            worst = self._worst(self._validator.iter_errors(value))
        except (_TooMuch, TooDear):
            return "the payload could not be checked: the schema asks for more work than its size is worth"
        except Exception as problem:  # the schema is invalid
            return f"the payload could not be checked: {type(problem).__name__} {problem}"
        finally:
            self._first_work = min(self._first_work, max(self._patterns.left, 0))
        return None if worst is None else f"{worst.message} (at {worst.json_path})"

    def _own_keywords(self) -> dict[str, Callable[..., Any]]:
        unevaluated = Unevaluated(self._spend, self._matches)
        return {
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            "unevaluatedProperties": unevaluated.properties,
            "unevaluatedItems": unevaluated.items,
            "uniqueItems": _unique_items,
        }

    def _counted(self, keyword: Callable[..., Any]) -> Callable[..., Any]:
        def check(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
            self._spend(1 + (len(wanted) // _ENTRIES_PER_STEP if isinstance(wanted, list | dict) else 0))
            return keyword(validator, wanted, instance, schema)

        return check

    def _spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise _TooMuch

    def _matches(self, pattern: str, text: str) -> bool:
        return self._patterns.matches(f"(?s:.*)(?:{pattern})(?s:.*)", text)  # it may match anywhere

    def _pattern(self, validator: JsonValidator, text: str, instance: object, _: object) -> Iterator[Exception]:
        from jsonschema.exceptions import ValidationError

        if isinstance(instance, str) and not self._matches(text, instance):
            yield ValidationError(f"{instance!r} does not match {text!r}")

    def _pattern_properties(
        self, validator: JsonValidator, patterns: Mapping[str, object], instance: object, _: object
    ) -> Iterator[Exception]:
        if not isinstance(instance, dict):
            return
        for text, subschema in patterns.items():
            for name, value in instance.items():
                if self._matches(text, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=text)

    def _additional_properties(
        self, validator: JsonValidator, allowed: object, instance: object, schema: Mapping[str, Any]
    ) -> Iterator[Exception]:
        from jsonschema.exceptions import ValidationError

        if not isinstance(instance, dict):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extras = [
            name for name in instance if name not in known and not any(self._matches(each, name) for each in patterns)
        ]
        if isinstance(allowed, dict):
            for name in extras:
                yield from validator.descend(instance[name], allowed, path=name)
        elif not allowed and extras:
            shown = ", ".join(map(repr, extras[:3]))
            yield ValidationError(f"Additional properties are not allowed: {shown}")


def _fits(source: SchemaSource) -> Check:
    try:
        return check_of(shape_of(source))
    except (InvalidSchema, UnsupportedSchema):  # the schema has no columns
        return lambda value: None


def _unique_items(_: JsonValidator, wanted: object, instance: object, schema: object) -> Iterator[Exception]:
    from jsonschema.exceptions import ValidationError

    if wanted and isinstance(instance, list) and len({_hashable(each) for each in instance}) < len(instance):
        yield ValidationError("the items are not unique")


def _hashable(value: Any) -> Any:
    """Return a key that is equal for equal JSON: 1 equals 1.0, but not true."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return ("object", frozenset((name, _hashable(each)) for name, each in value.items()))
    return ("array", tuple(map(_hashable, value))) if isinstance(value, list) else value
