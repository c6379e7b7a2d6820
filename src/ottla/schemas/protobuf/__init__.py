"""Protobuf schemas: .proto texts and descriptors, parsed without protoc.

text -> `parser` (elements as written) -> `linking` (full names, with `library` for the imports) -> `building` and
`options` (descriptors). `printer` writes elements as text, `normalizing` makes one form of all spellings, `unbuilding`
makes elements of descriptors, `compatibility` compares two schemas.
"""

from __future__ import annotations

from ottla.schemas.protobuf.schema import ProtobufSchema, parse_protobuf

__all__ = ["ProtobufSchema", "parse_protobuf"]
