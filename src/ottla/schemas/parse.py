"""Parsing a schema of any type. The parser of a type is imported with the first schema of that type."""

from __future__ import annotations

from ottla.schemas.schema import Parsed, SchemaSource, SchemaType


def parse(source: SchemaSource) -> Parsed:
    """Parse a schema of any type. Raises InvalidSchema."""
    if source.type is SchemaType.AVRO:
        from ottla.schemas.avro import parse_avro

        return parse_avro(source)
    if source.type is SchemaType.JSON:
        from ottla.schemas.json import parse_json

        return parse_json(source)
    from ottla.schemas.protobuf import parse_protobuf

    return parse_protobuf(source)
