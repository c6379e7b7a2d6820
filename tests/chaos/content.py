"""Records that prove themselves: who wrote it, its number, and padding that follows from both."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Written(NamedTuple):
    writer: str
    number: int


def value_of(writer: str, number: int) -> bytes:
    padding = hashlib.sha256(f"{writer}/{number}".encode()).hexdigest() * (1 + number % 4)
    return f"{writer} {number} {padding}".encode()


def written(value: bytes) -> Written:
    """What a value says; AssertionError if its content is not what was written."""
    writer, number, _ = value.decode().split(" ")
    assert value == value_of(writer, int(number)), f"{writer} {number} has other content than was written"
    return Written(writer, int(number))
