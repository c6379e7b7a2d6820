"""Whether a payload can be read by a schema: what the broker asks of records of a topic with a contract.

`reader_of` makes, once per schema, a function that answers with None, or with why the payload cannot be read.

Rules:
- The whole payload must be the value: bytes that are left over are an error.
- Time is bounded by the payload's size: patterns of JSON schemas run on the bounded engine (`model.re2`), and an Avro
  schema whose items take no bytes (so that a few bytes could claim billions of them) is one that nothing can be checked
  by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any

from ottla.model.limits import ERROR_TEXT_CHARS_MAX
from ottla.model.re2.match import Search, pattern_of
from ottla.model.re2.nodes import RegexError
from ottla.schemas import jackson
from ottla.schemas.schema import InvalidSchema, SchemaType, Source

# Answers with why `payload` cannot be read; None when it can. Protobuf also wants to know which message it is.
Reader = Callable[[bytes, tuple[int, ...] | None], str | None]


def reader_of(source: Source) -> Reader:
    """Raises InvalidSchema if nothing can be checked by this schema."""
    if source.type is SchemaType.AVRO:
        return _avro(source)
    if source.type is SchemaType.JSON:
        return _json(source)
    return _protobuf(source)


def _avro(source: Source) -> Reader:
    import fastavro
    from fastavro.schema import SchemaParseException

    named: dict[str, Any] = {}
    try:
        for text in source.resolved.values():
            fastavro.parse_schema(jackson.read(text, comments=True), named)
        schema = fastavro.parse_schema(jackson.read(source.text, comments=True), named)
    except (SchemaParseException, ValueError, TypeError, RecursionError) as error:
        raise InvalidSchema(str(error)) from error
    if _has_weightless_items(schema, named, {}):
        raise InvalidSchema("it has arrays or maps of items that take no bytes")

    def read(payload: bytes, _: tuple[int, ...] | None) -> str | None:
        stream = BytesIO(payload)
        try:
            fastavro.schemaless_reader(stream, schema)
        except EOFError:
            return "the payload ends too early"
        except Exception as error:  # a payload can be wrong in many ways, and fastavro has an exception for each
            return _cut(f"the payload is not Avro of this schema: {type(error).__name__} {error}")
        left = len(payload) - stream.tell()
        return f"{left} bytes are left over behind the value" if left else None

    return read


def _has_weightless_items(schema: Any, named: Mapping[str, Any], seen: dict[str, None]) -> bool:
    """Whether some array (or map: those have keys, so never) holds items that are written as nothing."""
    if isinstance(schema, list):
        return any(_has_weightless_items(each, named, seen) for each in schema)
    if isinstance(schema, str):
        if schema not in named or schema in seen:
            return False
        seen[schema] = None
        return _has_weightless_items(named[schema], named, seen)
    kind = schema.get("type")
    if kind == "array":
        items = schema["items"]
        return _is_weightless(items, named, {}) or _has_weightless_items(items, named, seen)
    if kind == "map":
        return _has_weightless_items(schema["values"], named, seen)
    if kind in ("record", "error"):
        return any(_has_weightless_items(field["type"], named, seen) for field in schema["fields"])
    return isinstance(kind, dict | list) and _has_weightless_items(kind, named, seen)


def _is_weightless(schema: Any, named: Mapping[str, Any], seen: dict[str, None]) -> bool:
    if isinstance(schema, list):
        return False  # the branch takes a byte
    if isinstance(schema, str):
        if schema == "null":
            return True
        if schema not in named or schema in seen:
            return False
        return _is_weightless(named[schema], named, {**seen, schema: None})
    kind = schema.get("type")
    if kind == "fixed":
        return bool(schema["size"] == 0)
    if kind in ("record", "error"):
        return all(_is_weightless(field["type"], named, seen) for field in schema["fields"])
    return kind == "null" or (isinstance(kind, dict | list) and _is_weightless(kind, named, seen))


def _json(source: Source) -> Reader:
    from jsonschema import validators
    from jsonschema.exceptions import SchemaError, best_match
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7

    try:
        schema = json.loads(source.text)
        kind = validators.validator_for(schema, default=validators.Draft7Validator)
        resources = [
            (name, Resource.from_contents(json.loads(text), default_specification=DRAFT7))
            for name, text in source.resolved.items()
        ]
    except (ValueError, SchemaError) as error:
        raise InvalidSchema(str(error)) from error
    bounded = validators.extend(
        kind,
        {"pattern": _pattern, "patternProperties": _pattern_properties, "additionalProperties": _additional_properties},
    )
    registry: Registry[Any] = Registry().with_resources(resources)
    validator = bounded(schema, registry=registry)

    def read(payload: bytes, _: tuple[int, ...] | None) -> str | None:
        try:
            value = json.loads(payload)
        except (ValueError, RecursionError) as error:
            return _cut(f"the payload is not JSON: {error}")
        try:
            worst = best_match(validator.iter_errors(value))
        except (Unresolvable, RegexError, RecursionError) as problem:
            return _cut(f"the payload could not be checked: {problem}")
        return None if worst is None else _cut(f"{worst.message} (at {worst.json_path})")

    return read


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


def _protobuf(source: Source) -> Reader:
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    from ottla.schemas.protobuf import parse_protobuf

    parsed = parse_protobuf(source)

    def read(payload: bytes, indexes: tuple[int, ...] | None) -> str | None:
        try:
            message = GetMessageClass(parsed.message_descriptor(indexes or (0,)))()
        except (KeyError, IndexError, ValueError) as error:
            return _cut(f"the schema has no such message: {error}")
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            return _cut(f"the payload is not a {message.DESCRIPTOR.full_name}: {error}")
        missing = message.FindInitializationErrors()
        return f"required fields are missing: {', '.join(missing)}" if missing else None

    return read


def _cut(text: str) -> str:
    return text[:ERROR_TEXT_CHARS_MAX]
