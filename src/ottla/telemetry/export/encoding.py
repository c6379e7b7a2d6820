"""The fields of Protobuf messages, encoded: what OTLP's messages are made of.

Messages are joined from the inside out, so that each knows its length. A library would need classes made from OTLP's
definitions, and memory and time to import them; what a node pushes takes six kinds of fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from ottla.model.version import VERSION
from ottla.telemetry.protobuf import EIGHT_BYTES, SIZED, VARINT
from ottla.wire.varint import uvarint_bytes

_DOUBLE, _FIXED, _SIGNED = struct.Struct("<d").pack, struct.Struct("<Q").pack, struct.Struct("<q").pack
_INT64_MAX = 2**63 - 1

# The ids of the fields, by message, as in opentelemetry.proto.common.v1 and resource.v1.
_KEY, _VALUE = 1, 2  # KeyValue
_TEXT, _TRUTH, _INT, _DOUBLE_VALUE = 1, 2, 3, 4  # AnyValue
_ATTRIBUTES = 1  # Resource
_SCOPE_NAME, _SCOPE_VERSION = 1, 2  # InstrumentationScope

SCOPE = "ottla"
Attribute = str | bool | int | float


def sized(id: int, value: bytes) -> bytes:
    """Encode a message, or bytes."""
    return uvarint_bytes(id << 3 | SIZED) + uvarint_bytes(len(value)) + value


def text(id: int, value: str) -> bytes:
    return sized(id, value.encode("utf-8", "replace"))


def number(id: int, value: int) -> bytes:
    """Encode a varint, not below 0."""
    return uvarint_bytes(id << 3 | VARINT) + uvarint_bytes(value)


def fixed(id: int, value: int) -> bytes:
    """Encode a number of 64 bits without a sign."""
    return uvarint_bytes(id << 3 | EIGHT_BYTES) + _FIXED(value)


def signed(id: int, value: int) -> bytes:
    """Encode a number of 64 bits with a sign."""
    return uvarint_bytes(id << 3 | EIGHT_BYTES) + _SIGNED(value)


def double(id: int, value: float) -> bytes:
    return uvarint_bytes(id << 3 | EIGHT_BYTES) + _DOUBLE(value)


def fits_int64(value: float) -> bool:
    """Whether a value is a whole number that OTLP has room for."""
    return isinstance(value, int) and -_INT64_MAX <= value <= _INT64_MAX


def attribute(id: int, key: str, value: Attribute) -> bytes:
    """Encode a KeyValue."""
    if isinstance(value, str):
        told = text(_TEXT, value)
    elif isinstance(value, bool):
        told = number(_TRUTH, value)
    elif isinstance(value, int) and fits_int64(value):
        told = number(_INT, value & (2**64 - 1))
    else:
        told = double(_DOUBLE_VALUE, float(value))
    return sized(id, text(_KEY, key) + sized(_VALUE, told))


def attributes(id: int, values: Iterable[tuple[str, Attribute]]) -> bytes:
    return b"".join([attribute(id, key, value) for key, value in values])


def resource(values: Mapping[str, Attribute]) -> bytes:
    """Encode a Resource: who pushes."""
    return attributes(_ATTRIBUTES, values.items())


def scope() -> bytes:
    """Encode the InstrumentationScope of all that a node pushes."""
    return text(_SCOPE_NAME, SCOPE) + text(_SCOPE_VERSION, VERSION)
