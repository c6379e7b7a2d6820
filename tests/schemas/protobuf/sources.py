"""Short ways to schemas for the tests."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.schemas.protobuf import ProtobufSchema, parse_protobuf
from ottla.schemas.schema import Reference, SchemaSource, SchemaType


def understood(
    text: str, imports: Mapping[str, str] | None = None, versions: Mapping[str, int] | None = None
) -> ProtobufSchema:
    """A text with its imports, each registered under its own name as subject."""
    imports = imports or {}
    references = tuple(Reference(name, name, (versions or {}).get(name, 1)) for name in imports)
    return parse_protobuf(SchemaSource(text, SchemaType.PROTOBUF, references, imports))


def proto3(body: str, *more: str) -> ProtobufSchema:
    return understood(f'syntax = "proto3";\n{body}', dict(zip(more[::2], more[1::2], strict=True)))


def proto2(body: str) -> ProtobufSchema:
    return understood(f'syntax = "proto2";\n{body}')
