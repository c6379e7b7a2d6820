"""The fields of an encoded Protobuf message, read in bounded time.

Rules:
- Nothing is read behind the end of the message, and no length is believed before it is compared with that end.
- Groups, which no OTLP message has, are skipped without recursion.
- All messages of a payload together may have `TELEMETRY_FIELDS_MAX` fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.model import limits

VARINT, EIGHT_BYTES, SIZED, GROUP, GROUP_END, FOUR_BYTES = 0, 1, 2, 3, 4, 5
_TAG_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1


class PayloadError(ValueError):
    """The payload is not what it should be."""


class EncodedField(NamedTuple):
    """`at` and `end` enclose the bytes of the value; a varint has its value in `number`."""

    id: int
    kind: int
    at: int
    end: int
    number: int


class PayloadReader:
    """Reads the messages of one payload."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._left = limits.TELEMETRY_FIELDS_MAX

    def fields(self, at: int, end: int) -> Iterator[EncodedField]:
        """Yield the fields of the message between two positions; raise PayloadError."""
        groups: list[int] = []
        while at < end:
            tag, at = self._varint(at, end, 35)
            id, kind = tag >> 3, tag & 7
            if not id or tag > _TAG_MAX:
                raise PayloadError("a field has no valid number")
            self._left -= 1
            if self._left < 0:
                raise PayloadError(f"it has more than {limits.TELEMETRY_FIELDS_MAX} fields")
            number, begin = 0, at
            if kind == VARINT:
                number, at = self._varint(at, end, 70)
            elif kind == EIGHT_BYTES:
                at += 8
            elif kind == SIZED:
                size, begin = self._varint(at, end, 35)
                at = begin + size
            elif kind == FOUR_BYTES:
                at += 4
            elif kind == GROUP:
                if len(groups) >= limits.TELEMETRY_GROUP_DEPTH_MAX:
                    raise PayloadError("groups are nested too deeply")
                groups.append(id)
                continue
            elif kind == GROUP_END and groups and groups.pop() == id:
                continue
            else:
                raise PayloadError(f"field {id} has no valid type")
            if at > end:
                raise PayloadError(f"field {id} is cut off")
            if not groups:
                yield EncodedField(id, kind, begin, at, number)
        if groups:
            raise PayloadError("a group has no end")

    def text(self, field: EncodedField) -> str:
        try:
            return self.payload[field.at : field.end].decode()
        except UnicodeDecodeError:
            raise PayloadError(f"field {field.id} is not UTF-8") from None

    def _varint(self, at: int, end: int, bits: int) -> tuple[int, int]:
        """Return a number of at most `bits` bits, seven in a byte, without those above 64, and the position behind."""
        payload, value = self.payload, 0
        for shift in range(0, bits, 7):
            if at >= end:
                raise PayloadError("a number is cut off")
            byte = payload[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value & _UINT64_MAX, at
        raise PayloadError("a number has too many bytes")
