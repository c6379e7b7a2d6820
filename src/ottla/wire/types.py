"""The primitive types of message fields, for the type checker and for the codec generator.

`Int32` is `int` to mypy and `Fixed("i", 4)` to the generator; `ProducerId` is the type of that name in `model.ids`. A
uuid is its raw 16 bytes. `Records` decodes to a zero-copy `memoryview` of the request buffer; for encoding it may also
be any sized object that the connection can send (see `wire.compile`).
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple

from ottla.model import ids
from ottla.model.ids import (
    NO_BROKER_EPOCH,
    NO_ID,
    NO_LEADER_EPOCH,
    NO_PARTITION_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
)

__all__ = [
    "NO_BROKER_EPOCH",
    "NO_ID",
    "NO_LEADER_EPOCH",
    "NO_PARTITION_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "Bool",
    "BrokerEpoch",
    "Bytes",
    "Fixed",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "LeaderEpoch",
    "PartitionEpoch",
    "ProducerEpoch",
    "ProducerId",
    "Records",
    "Sized",
    "String",
    "UInt16",
    "UInt32",
    "Uuid",
    "Versions",
    "WireError",
]


class WireError(ValueError):
    """The bytes are not the message they claim to be, or a message does not fit its declaration."""


class Crowded(WireError):
    """A message has so many elements that it must be decoded in steps."""


class Fixed(NamedTuple):
    """A type that always takes the same number of bytes: neighbours are read with one `struct` call."""

    code: str
    size_bytes: int


class Sized(NamedTuple):
    """A type whose bytes are preceded by their length."""

    kind: str


Bool = Annotated[bool, Fixed("?", 1)]
Int8 = Annotated[int, Fixed("b", 1)]
Int16 = Annotated[int, Fixed("h", 2)]
UInt16 = Annotated[int, Fixed("H", 2)]
Int32 = Annotated[int, Fixed("i", 4)]
UInt32 = Annotated[int, Fixed("I", 4)]
Int64 = Annotated[int, Fixed("q", 8)]
Float64 = Annotated[float, Fixed("d", 8)]
Uuid = Annotated[bytes, Fixed("16s", 16)]
BrokerEpoch = Annotated[ids.BrokerEpoch, Fixed("q", 8)]
LeaderEpoch = Annotated[ids.LeaderEpoch, Fixed("i", 4)]
PartitionEpoch = Annotated[ids.PartitionEpoch, Fixed("i", 4)]
ProducerId = Annotated[ids.ProducerId, Fixed("q", 8)]
ProducerEpoch = Annotated[ids.ProducerEpoch, Fixed("h", 2)]
String = Annotated[str, Sized("string")]
Bytes = Annotated[bytes, Sized("bytes")]
# Decoding gives a memoryview; encoding also takes any object with a length, such as a slice of a log file: hence Any.
Records = Annotated[Any, Sized("records")]


class Versions(NamedTuple):
    """An inclusive range of versions. `1+` is open, `none` contains nothing."""

    low: int
    high: int

    @classmethod
    @cache
    def of(cls, text: str) -> Versions:
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), 32767)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high
