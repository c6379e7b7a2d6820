"""How a record names the schema of its key or value: Confluent's wire format.

Layout before the payload, or alone in a header (`__key_schema_id`, `__value_schema_id`):

    magic 0   id, 4 bytes big-endian
    magic 1   GUID, 16 bytes
    then, only for Protobuf, the path to the message in its file: count and indexes as zig-zag varints; the path [0]
    (the file's first message) is the single byte 0

Rules: nothing is read beyond the value's end, and a value without a valid frame is a `BadFrame` that says why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from ottla.model.limits import INT32_MAX, PROTOBUF_DEPTH_MAX, VARINT_BYTES_MAX
from ottla.schemas.schema import Reference
from ottla.wire.varint import zigzag_bytes

MAGIC_ID = 0
MAGIC_GUID = 1
KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"
ID_PREFIX_BYTES = 5
GUID_PREFIX_BYTES = 17
FRAME_BYTES_MAX = GUID_PREFIX_BYTES + (1 + PROTOBUF_DEPTH_MAX) * VARINT_BYTES_MAX
FIRST_MESSAGE = (0,)


class BadFrame(ValueError):
    """The bytes do not begin with a schema's id; the message says what is wrong with them."""


class Framed(NamedTuple):
    """The schema of a value (one of id and GUID is None), the message if asked for, and where the payload begins."""

    schema_id: int | None
    guid: UUID | None
    message_indexes: tuple[int, ...] | None
    payload_begin: int


def frame(schema_id: int, payload: bytes | memoryview, message_indexes: Sequence[int] | None = None) -> bytes:
    """Return a value in the classic form: magic 0, id, indexes of the message (Protobuf only), payload."""
    return b"".join((schema_mark(schema_id, message_indexes), payload))


def schema_mark(schema: int | UUID, message_indexes: Sequence[int] | None = None) -> bytes:
    """Return the frame of a schema: for use before a payload (usually an id) or as a header's
    value (usually a GUID).
    """
    if isinstance(schema, UUID):
        mark = bytes((MAGIC_GUID,)) + schema.bytes
    elif 0 <= schema <= INT32_MAX:
        mark = bytes((MAGIC_ID,)) + schema.to_bytes(4, "big")
    else:
        raise ValueError(f"{schema} is no id of a schema")
    return mark if message_indexes is None else mark + _indexes_bytes(message_indexes)


def unframe(value: bytes | memoryview, *, with_indexes: bool = False) -> Framed:
    """Read the frame of a value. `with_indexes`: the schema is Protobuf, so the indexes of the message follow."""
    if len(value) == 0:
        raise BadFrame("the value is empty: no magic byte and no schema id")
    magic = value[0]
    schema_id: int | None = None
    guid: UUID | None = None
    if magic == MAGIC_ID:
        at = ID_PREFIX_BYTES
        if len(value) < at:
            raise BadFrame(f"the value ends within the schema id: {len(value)} bytes, at least {at} are needed")
        schema_id = int.from_bytes(value[1:at], "big")
        if schema_id > INT32_MAX:
            raise BadFrame(f"the schema id is negative: {schema_id - 2**32}")
    elif magic == MAGIC_GUID:
        at = GUID_PREFIX_BYTES
        if len(value) < at:
            raise BadFrame(f"the value ends within the schema's GUID: {len(value)} bytes, at least {at} are needed")
        guid = UUID(bytes=bytes(value[1:at]))
    else:
        raise BadFrame(f"the value begins with byte {magic}, not with the magic byte 0 (schema id) or 1 (schema GUID)")
    if not with_indexes:
        return Framed(schema_id, guid, None, at)
    indexes, at = _read_indexes(value, at)
    return Framed(schema_id, guid, indexes, at)


def find_mark(headers: Iterable[tuple[str, bytes | None]], *, of_key: bool) -> bytes | None:
    """Return the header that names the schema of a record's key or value, or None; the last counts, as in Kafka."""
    name = KEY_HEADER if of_key else VALUE_HEADER
    found: bytes | None = None
    for key, value in headers:
        if key == name and value is not None:
            found = value
    return found


def guid_of(
    text: str,
    references: Sequence[Reference] = (),
    metadata: Mapping[str, Any] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> UUID:
    """Return the GUID of a schema: an MD5 over its text, references, metadata and rules (the latter two as in the
    API's JSON). It does not depend on the registry, subject, id or version.
    """
    md5 = hashlib.md5(text.encode(), usedforsecurity=False)
    for reference in references:
        md5.update(reference.name.encode())
        md5.update(reference.subject.encode())
        md5.update(reference.version.to_bytes(4, "big", signed=True))
    for part, spell in ((metadata, _metadata_parts), (rule_set, _rule_set_parts)):
        if part is not None:
            md5.update(b"\x01")
            for piece in spell(part):
                md5.update(piece.encode() if isinstance(piece, str) else piece)
    return UUID(bytes=md5.digest())


def _metadata_parts(metadata: Mapping[str, Any]) -> Iterable[str]:
    for tag, values in sorted((metadata.get("tags") or {}).items()):
        yield tag
        yield from sorted(set(values))
    for name, value in sorted((metadata.get("properties") or {}).items()):
        yield from (name, value)
    yield from sorted(set(metadata.get("sensitive") or ()))


def _rule_set_parts(rule_set: Mapping[str, Any]) -> Iterable[str | bytes]:
    for group in ("migrationRules", "domainRules", "encodingRules"):
        for rule in rule_set.get(group) or ():
            yield from _rule_parts(rule)
    if rule_set.get("enableAt") is not None:
        yield str(rule_set["enableAt"])


def _rule_parts(rule: Mapping[str, Any]) -> Iterable[str | bytes]:
    for name in ("name", "doc", "kind", "mode", "type"):
        if rule.get(name) is not None:
            yield str(rule[name])
    yield from sorted(set(rule.get("tags") or ()))
    for name, value in sorted((rule.get("params") or {}).items()):
        yield from (name, value)
    for name in ("expr", "onSuccess", "onFailure"):
        if rule.get(name) is not None:
            yield str(rule[name])
    if rule.get("disabled"):
        yield b"\x01"


def _indexes_bytes(indexes: Sequence[int]) -> bytes:
    if tuple(indexes) == FIRST_MESSAGE:
        return b"\x00"
    if not 0 < len(indexes) <= PROTOBUF_DEPTH_MAX or min(indexes) < 0 or max(indexes) > INT32_MAX:
        raise ValueError(f"{list(indexes)} is no path to a message")
    return b"".join(map(zigzag_bytes, (len(indexes), *indexes)))


def _read_indexes(value: bytes | memoryview, at: int) -> tuple[tuple[int, ...], int]:
    count, at = _read_varint(value, at)
    if count == 0:
        return FIRST_MESSAGE, at
    if not 0 < count <= PROTOBUF_DEPTH_MAX:
        raise BadFrame(f"a path of {count} message indexes: it must have 1 to {PROTOBUF_DEPTH_MAX}")
    indexes = []
    for _ in range(count):
        index, at = _read_varint(value, at)
        if index < 0:
            raise BadFrame(f"a message index is negative: {index}")
        indexes.append(index)
    return tuple(indexes), at


def _read_varint(value: bytes | memoryview, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * VARINT_BYTES_MAX, 7):
        if at >= len(value):
            raise BadFrame("the value ends within the message indexes")
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number > 2**32 - 1:
                break
            return (number >> 1) ^ -(number & 1), at
    raise BadFrame("a message index has more than 32 bits")
