"""Whether a payload can be read by a schema: the broker's check of records of a topic with a contract.

`reader_of` makes, once per schema, a function that returns None, or why the payload cannot be read.

Rules:
- The whole payload must be the value: trailing bytes are an error.
- Time and depth are bounded by the payload's size, whatever the schema: this runs in the broker.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.limits import ERROR_TEXT_CHARS_MAX
from ottla.schemas.schema import SchemaSource, SchemaType

# Returns why `payload` cannot be read; None if it can. For Protobuf it also takes the indexes of the message.
PayloadCheck = Callable[[bytes, tuple[int, ...] | None], str | None]


def reader_of(source: SchemaSource) -> PayloadCheck:
    """Return the check of payloads of a schema. Raises InvalidSchema if nothing can be checked by it."""
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
