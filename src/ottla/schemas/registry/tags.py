"""Tags that schemas carry inside (`confluent:tags` of Avro records and fields): finding and changing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.schemas.avro import AvroSchema, parse_avro
from ottla.schemas.avro.types import Array, Map, Record, Schema, Union, full_name
from ottla.schemas.avro.write import to_text
from ottla.schemas.registry.entities import Tagged
from ottla.schemas.registry.refusal import invalid_schema
from ottla.schemas.schema import InvalidSchema, Parsed, SchemaType, Source

_TAGS = "confluent:tags"
Props = dict[str, Any]


def tags_in(parsed: Parsed) -> list[Tagged]:
    """What is tagged in a schema, in the order of its text."""
    if not isinstance(parsed, AvroSchema):
        return []
    found = (Tagged(path, kind, _tags(props)) for path, kind, props in _taggable(parsed.schema, set()))
    return [each for each in found if each.tags]


def with_tags(source: Source, added: Iterable[Tagged], removed: Iterable[Tagged] = ()) -> str:
    """The text of a schema with tags taken out, then put in. Raises Refused for a place that is not there."""
    if source.type is not SchemaType.AVRO:
        raise invalid_schema(f"Tags of {source.type} schemas are not changed here: write them into the schema")
    try:
        # Parsed anew, since it is changed: what the library remembers is everybody's.
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


def _taggable(schema: Schema, seen: set[str]) -> Iterator[tuple[str, str, Props]]:
    if isinstance(schema, Union):
        for branch in schema.branches:
            yield from _taggable(branch, seen)
    elif isinstance(schema, Array):
        yield from _taggable(schema.items, seen)
    elif isinstance(schema, Map):
        yield from _taggable(schema.values, seen)
    elif isinstance(schema, Record) and full_name(schema) not in seen:
        name = full_name(schema)
        seen.add(name)
        yield name, "sr_record", schema.props
        for field in schema.fields:
            yield f"{name}.{field.name}", "sr_field", field.props
            yield from _taggable(field.type, seen)


def _tags(props: Props) -> tuple[str, ...]:
    value = props.get(_TAGS)
    return tuple(dict.fromkeys(str(tag) for tag in value)) if isinstance(value, list) else ()
