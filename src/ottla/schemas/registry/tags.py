"""Tags that schemas carry inside (`confluent:tags` of Avro, options of Protobuf): finding them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ottla.schemas.avro import AvroSchema
from ottla.schemas.avro.types import Array, Map, Record, Schema, Union, full_name
from ottla.schemas.protobuf import ProtobufSchema
from ottla.schemas.schema import Parsed

_TAGS = "confluent:tags"


class Tagged(NamedTuple):
    """Something inside a schema, and its tags."""

    path: str
    kind: str
    tags: tuple[str, ...]


def tags_in(parsed: Parsed) -> list[Tagged]:
    if isinstance(parsed, ProtobufSchema):
        return [Tagged(path, "sr_field" if is_field else "sr_record", tags) for path, is_field, tags in parsed.tags]
    return list(_of(parsed.schema, set())) if isinstance(parsed, AvroSchema) else []


def _of(schema: Schema, seen: set[str]) -> Iterator[Tagged]:
    if isinstance(schema, Union):
        for branch in schema.branches:
            yield from _of(branch, seen)
    elif isinstance(schema, Array):
        yield from _of(schema.items, seen)
    elif isinstance(schema, Map):
        yield from _of(schema.values, seen)
    elif isinstance(schema, Record) and full_name(schema) not in seen:
        name = full_name(schema)
        seen.add(name)
        if tags := _tags(schema.props):
            yield Tagged(name, "sr_record", tags)
        for field in schema.fields:
            if tags := _tags(field.props):
                yield Tagged(f"{name}.{field.name}", "sr_field", tags)
            yield from _of(field.type, seen)


def _tags(props: Mapping[str, Any]) -> tuple[str, ...]:
    value = props.get(_TAGS)
    return tuple(dict.fromkeys(str(tag) for tag in value)) if isinstance(value, list) else ()
