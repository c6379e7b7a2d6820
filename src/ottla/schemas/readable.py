"""Whether a payload can be read by a schema: what the broker asks of records of a topic with a contract.

`reader_of` makes, once per schema, a function that answers with None, or with why the payload cannot be read.

Rules:
- The whole payload must be the value: bytes that are left over are an error.
- Time and depth are bounded by the payload's size, whatever the schema: this runs where all clients are served.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.limits import ERROR_TEXT_CHARS_MAX
from ottla.schemas.schema import SchemaSource, SchemaType

# Answers with why `payload` cannot be read; None when it can. Protobuf also wants to know which message it is.
PayloadCheck = Callable[[bytes, tuple[int, ...] | None], str | None]


def reader_of(source: SchemaSource) -> PayloadCheck:
    """Raises InvalidSchema if nothing can be checked by this schema."""
    if source.type is SchemaType.PROTOBUF:
        from ottla.schemas.readable_protobuf import ProtobufPayloads

        why_no_message = ProtobufPayloads(source).why_unreadable
        return lambda payload, indexes: _cut(why_no_message(payload, indexes))
    if source.type is SchemaType.AVRO:
        from ottla.schemas.readable_avro import AvroPayloads

        why = AvroPayloads(source).why_unreadable
    else:
        from ottla.schemas.readable_json import JsonPayloads

        why = JsonPayloads(source).why_unreadable
    return lambda payload, _: _cut(why(payload))


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:ERROR_TEXT_CHARS_MAX]
