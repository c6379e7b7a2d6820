"""MessagePack to JSON values: a decoder for looking at records.

Rules:
- Depth is bounded, and no more items are made than there are bytes: a hostile length fails before anything is made.
- What JSON does not have becomes text: binary is hex, an extension is its type and hex, a timestamp is ISO 8601.
"""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime, timedelta

from ottla.model.limits import CONSOLE_DEPTH_MAX

_TIMESTAMP = -1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_SIZES = {1: ">B", 2: ">H", 4: ">I"}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


class NotMsgpack(ValueError):
    """The bytes are not one value of MessagePack; the message says why."""


def decode(data: bytes) -> object:
    """Return the one value that the bytes are. Raises NotMsgpack."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise NotMsgpack(f"{len(data) - reader.at} bytes follow the value")
    return value


class _Reader:
    """Reads values from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def value(self, depth: int) -> object:
        if depth > CONSOLE_DEPTH_MAX:
            raise NotMsgpack(f"it is nested more than {CONSOLE_DEPTH_MAX} deep")
        mark = self._take(1)[0]
        if mark <= 0x7F or mark >= 0xE0:
            return mark if mark <= 0x7F else mark - 0x100
        if mark <= 0x8F:
            return self._map(mark & 0x0F, depth)
        if mark <= 0x9F:
            return self._array(mark & 0x0F, depth)
        if mark <= 0xBF:
            return self._text(mark & 0x1F)
        return self._marked(mark, depth)

    def _marked(self, mark: int, depth: int) -> object:
        match mark:
            case 0xC0:
                return None
            case 0xC2 | 0xC3:
                return mark == 0xC3
            case 0xC4 | 0xC5 | 0xC6:
                return self._take(self._size(1 << (mark - 0xC4))).hex()
            case 0xC7 | 0xC8 | 0xC9:
                return self._extension(self._size(1 << (mark - 0xC7)))
            case 0xD9 | 0xDA | 0xDB:
                return self._text(self._size(1 << (mark - 0xD9)))
            case 0xDC | 0xDD:
                return self._array(self._size(2 << (mark - 0xDC)), depth)
            case 0xDE | 0xDF:
                return self._map(self._size(2 << (mark - 0xDE)), depth)
        if mark in _FIXED_EXTENSIONS:
            return self._extension(_FIXED_EXTENSIONS[mark])
        if mark in _NUMBERS:
            form = _NUMBERS[mark]
            return struct.unpack(form, self._take(struct.calcsize(form)))[0]
        raise NotMsgpack(f"no value begins with byte 0x{mark:02x}")

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise NotMsgpack("it ends within a value")
        taken = self._data[self.at : self.at + count]
        self.at += count
        return taken

    def _size(self, width: int) -> int:
        size: int = struct.unpack(_SIZES[width], self._take(width))[0]
        return size

    def _check_count(self, count: int) -> None:
        if count > len(self._data) - self.at:
            raise NotMsgpack(f"{count} items do not fit into the rest of it")

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError:
            raise NotMsgpack("a text is not UTF-8") from None

    def _array(self, count: int, depth: int) -> list[object]:
        self._check_count(count)
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[str, object]:
        self._check_count(2 * count)
        found: dict[str, object] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            found[key if isinstance(key, str) else json.dumps(key)] = self.value(depth + 1)
        return found

    def _extension(self, size: int) -> object:
        kind: int = struct.unpack(">b", self._take(1))[0]
        data = self._take(size)
        time = _timestamp(data) if kind == _TIMESTAMP else None
        return time if time is not None else {"extension": kind, "hex": data.hex()}


def _timestamp(data: bytes) -> str | None:
    """The time of the extension for timestamps; None if there is no such day in the calendar."""
    nanoseconds = 0
    if len(data) == 4:
        seconds = int.from_bytes(data, "big")
    elif len(data) == 8:
        whole = int.from_bytes(data, "big")
        nanoseconds, seconds = whole >> 34, whole & ((1 << 34) - 1)
    elif len(data) == 12:
        nanoseconds, seconds = struct.unpack(">Iq", data)
    else:
        return None
    try:
        return (_EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)).isoformat()
    except OverflowError:
        return None
