"""Reserved fields: names that the metadata property `confluent:reserved` excludes from a schema.

Checked if the setting `validateFields` is on: a reserved name stays reserved, and no field may have it.
"""

from __future__ import annotations

import json

from ottla.schemas.avro import AvroSchema
from ottla.schemas.avro.types import AvroRecord
from ottla.schemas.registry.metadata_and_rules import Json, property_of
from ottla.schemas.schema import Parsed

_RESERVED = "confluent:reserved"


def conflicts(parsed: Parsed, metadata: Json | None, before: Json | None) -> list[str]:
    """Return what is wrong with the fields of a schema, given its metadata and that of the version before."""
    reserved = _names(metadata)
    messages = [
        f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's"
        " metadata."
        for name in _names(before)
        if name not in reserved
    ]
    fields = _fields(parsed) if reserved else ()
    return messages + [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in reserved
        if name in fields
    ]


def _names(metadata: Json | None) -> list[str]:
    given = property_of(metadata, _RESERVED) or ""
    return sorted({name.strip() for name in given.split(",")} - {""})


def _fields(parsed: Parsed) -> set[str]:
    """Return the names of the top-level fields."""
    if isinstance(parsed, AvroSchema):
        return {field.name for field in parsed.schema.fields} if isinstance(parsed.schema, AvroRecord) else set()
    from ottla.schemas.protobuf import ProtobufSchema

    if isinstance(parsed, ProtobufSchema):
        return {field.name for message in parsed.descriptor.message_type for field in message.field}
    properties = json.loads(parsed.canonical)
    properties = properties.get("properties") if isinstance(properties, dict) else None
    return set(properties) if isinstance(properties, dict) else set()
