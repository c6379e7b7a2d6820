"""Functions that generated codecs call in uncommon cases: long varints, tagged fields, errors about lengths.

An unsigned varint carries seven bits a byte, lowest first; the top bit says that more follow. Lengths need at most five
bytes. Record batches, Avro, Protobuf and message indexes encode their numbers in the same way.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ottla.model.limits import REQUEST_ELEMENTS_MAX, TAGGED_FIELDS_MAX
from ottla.wire.types import Crowded, WireError

SEVERAL = (list, tuple)  # types of records in several pieces

_BYTE = [bytes([value]) for value in range(128)]
# The zigzag varints of the numbers from 0 to 8191: those that take one or two bytes.
ZIGZAG_BYTES = [bytes([2 * n]) if n < 64 else bytes([2 * n & 0x7F | 0x80, n >> 6]) for n in range(1 << 13)]


def uvarint_bytes(value: int) -> bytes:
    """Encode a non-negative number as an unsigned varint."""
    if value < 128:
        return _BYTE[value]
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag_bytes(value: int) -> bytes:
    """Encode a signed number of up to 64 bits as a zigzag varint: 0, -1, 1, -2 … become 0, 1, 2, 3 …"""
    return ZIGZAG_BYTES[value] if 0 <= value < 8192 else uvarint_bytes((value << 1) ^ (value >> 63))


def read_uvarint(view: memoryview | bytes, pos: int) -> tuple[int, int]:
    """Decode an unsigned varint at `pos`: (number, position after it)."""
    value = view[pos]
    return (value, pos + 1) if value < 128 else more_uvarint(view, pos + 1, value)


def more_uvarint(view: memoryview | bytes, pos: int, first: int) -> tuple[int, int]:
    """Decode the rest of a varint whose first byte, just before `pos`, said that more bytes follow."""
    byte = view[pos]
    value = first & 127 | (byte & 127) << 7
    pos += 1
    if byte < 128:
        return value, pos
    for shift in (14, 21, 28):
        byte = view[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, pos
    raise WireError("a varint of more than 32 bits")


def skip_tags(view: memoryview, pos: int, count: int) -> int:
    """Skip unknown tagged fields; `count` is the first byte of their number, a varint."""
    if count > 127:
        count, pos = more_uvarint(view, pos, count)
        if count > TAGGED_FIELDS_MAX:
            bad_length("tagged fields", count, len(view) - pos)
    for _ in range(count):
        _, pos = read_uvarint(view, pos)
        size_bytes, pos = read_uvarint(view, pos)
        pos += size_bytes
        if pos > len(view):
            raise WireError("a tagged field ends beyond the message")
    return pos


def bad_length(where: str, length: int, left_bytes: int) -> NoReturn:
    """Raise WireError: a length or count is negative, above its limit, or too large for the rest of the message."""
    raise WireError(f"{where}: length {length} is not possible, {left_bytes} bytes are left")


def null_value(where: str) -> NoReturn:
    raise WireError(f"{where} is null, which it must not be")


def bad_mark(where: str, mark: int) -> NoReturn:
    raise WireError(f"{where}: {mark} says neither null nor present")


def bad_tag(where: str, read_bytes: int, size_bytes: int) -> NoReturn:
    raise WireError(f"{where}: the tagged field claims {size_bytes} bytes but holds {read_bytes}")


def bad_uuid(where: str, value: bytes) -> NoReturn:
    raise WireError(f"{where}: a uuid has 16 bytes, not {len(value)}")


def spliced_bytes(value: Any) -> int:
    """Return the length of records that are sent separately: one sized object, or several in a row."""
    return sum(map(len, value)) if isinstance(value, SEVERAL) else len(value)


def crowded_at_once(where: str) -> NoReturn:
    raise Crowded(f"{where}: too many elements to decode them in one go")


def crowded_request(where: str) -> NoReturn:
    raise WireError(f"{where}: the request has more than {REQUEST_ELEMENTS_MAX} elements")
