"""Reading DER (the encoding of certificates), as far as names in certificates need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

OBJECT_IDENTIFIER: Final = 0x06
SEQUENCE: Final = 0x30
SET: Final = 0x31
CONTEXT_0: Final = 0xA0

_LONG_FORM = 0x80
_LENGTH_BYTES_MAX = 4


class InvalidDer(ValueError):
    """Bytes are not what they should be."""


class DerValue(NamedTuple):
    """`encoded` is the whole value, with its tag and length."""

    tag: int
    content: bytes
    encoded: bytes

    def values(self) -> Iterator[DerValue]:
        """The values in a value."""
        return read_values(self.content)

    def expect(self, tag: int) -> DerValue:
        if self.tag != tag:
            raise InvalidDer(f"expected the tag {tag:#x}, but found {self.tag:#x}")
        return self


def read_values(data: bytes) -> Iterator[DerValue]:
    """Read values that follow each other; raise InvalidDer."""
    position = 0
    while position < len(data):
        start, length = _header(data, position)
        if start + length > len(data):
            raise InvalidDer("a value is longer than what it is in")
        yield DerValue(data[position], data[start : start + length], data[position : start + length])
        position = start + length


def _header(data: bytes, position: int) -> tuple[int, int]:
    """Return where the content begins, and its length."""
    if position + 2 > len(data):
        raise InvalidDer("a value has no length")
    first, start = data[position + 1], position + 2
    if first < _LONG_FORM:
        return start, first
    size = first - _LONG_FORM
    if not 0 < size <= _LENGTH_BYTES_MAX or start + size > len(data):
        raise InvalidDer("a value has an invalid length")
    return start + size, int.from_bytes(data[start : start + size])


def object_identifier(content: bytes) -> str:
    """Return the dotted form of an object identifier."""
    if not content or content[-1] & 0x80:
        raise InvalidDer("an object identifier is not complete")
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))
