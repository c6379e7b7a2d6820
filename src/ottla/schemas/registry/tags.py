"""Inline tags of schemas (`confluent:tags` of records, objects and fields): finding them, and changing those of Avro
schemas. In JSON schemas they are looked up in objects, arrays and definitions, not in combined schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ottla.schemas.avro import AvroSchema, parse_avro
from ottla.schemas.avro.types import Array, AvroRecord, AvroType, Map, Union, full_name
from ottla.schemas.avro.write import to_text
from ottla.schemas.registry.entities import Tagged
from ottla.schemas.registry.refusal import invalid_schema
from ottla.schemas.schema import InvalidSchema, Parsed, SchemaSource, SchemaType

_TAGS = "confluent:tags"
Props = dict[str, Any]


def tags_in(parsed: Parsed) -> list[Tagged]:
    """Return the tagged elements of a schema, in the order of its text."""
    if isinstance(parsed, AvroSchema):
        places = _taggable(parsed.schema, set())
        return [Tagged(path, kind, tags) for path, kind, props in places if (tags := _tags(props))]
    from ottla.schemas.protobuf import ProtobufSchema

    if isinstance(parsed, ProtobufSchema):
        return [Tagged(each.path, "sr_field" if each.is_field else "sr_record", each.tags) for each in parsed.tags]
    return list(_in_json(json.loads(parsed.canonical), "", False))


def _in_json(schema: Any, scope: str, is_field: bool) -> Iterator[Tagged]:
    """Yield tagged elements. A field's tags come with the object that contains it, so those of an object that is a
    field are not repeated.
    """
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "array" or "items" in schema:
        yield from _in_json(schema.get("items"), f"{scope}array.", False)
    elif schema.get("type") == "object" or "properties" in schema:
        name = f"{scope}object"
        if not is_field and (tags := _tags(schema)):
            yield Tagged(name, "sr_record", tags)
        for field, its in _members(schema, "properties"):
            if isinstance(its, dict) and (tags := _tags(its)):
                yield Tagged(f"{name}.{field}", "sr_field", tags)
            yield from _in_json(its, f"{name}.{field}.", True)
        for place in ("definitions", "$defs"):
            for key, its in _members(schema, place):
                yield from _in_json(its, f"{name}.{place}.{key}.", False)


def _members(schema: Props, name: str) -> Iterable[tuple[str, Any]]:
    held = schema.get(name)
    return held.items() if isinstance(held, dict) else ()


def with_tags(source: SchemaSource, added: Iterable[Tagged], removed: Iterable[Tagged] = ()) -> str:
    """Return the text of a schema with tags removed, then added. Raises RegistryRefusal for a path that does not
    exist.
    """
    if source.type is not SchemaType.AVRO:
        raise invalid_schema(f"Tags of {source.type} schemas are not changed here: write them into the schema")
    try:
        # Parsed anew, since it is changed: parsed schemas of the library are shared.
        parsed = parse_avro(source, strict=False)
    except InvalidSchema as error:
        raise invalid_schema(f"Invalid schema of type {source.type}, details: {error}") from None
    places = {(path, kind): props for path, kind, props in _taggable(parsed.schema, set())}
    for each, adds in [*((each, False) for each in removed), *((each, True) for each in added)]:
        props = places.get((each.path, each.kind))
        if props is None:
            raise invalid_schema(f"No matching path '{each.path}' found in the schema")
        _change(props, each.tags, adds)
    return to_text(parsed.schema, parsed.known)


def _change(props: Props, tags: tuple[str, ...], adds: bool) -> None:
    held = _tags(props)
    now = [*dict.fromkeys((*held, *tags))] if adds else [tag for tag in held if tag not in tags]
    if now:
        props[_TAGS] = now
    else:
        props.pop(_TAGS, None)


def _taggable(schema: AvroType, seen: set[str]) -> Iterator[tuple[str, str, Props]]:
    if isinstance(schema, Union):
        for branch in schema.branches:
            yield from _taggable(branch, seen)
    elif isinstance(schema, Array):
        yield from _taggable(schema.items, seen)
    elif isinstance(schema, Map):
        yield from _taggable(schema.values, seen)
    elif isinstance(schema, AvroRecord) and full_name(schema) not in seen:
        name = full_name(schema)
        seen.add(name)
        yield name, "sr_record", schema.props
        for field in schema.fields:
            yield f"{name}.{field.name}", "sr_field", field.props
            yield from _taggable(field.type, seen)


def _tags(props: Props) -> tuple[str, ...]:
    value = props.get(_TAGS)
    return tuple(dict.fromkeys(str(tag) for tag in value)) if isinstance(value, list) else ()
