"""Literals of options as values of a field's type, with the ranges of the types checked."""

from __future__ import annotations

import math
import struct
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.text_encoding import CEscape

from ottla.schemas.protobuf.elements import Literal, LiteralKind, ProtoOption, Value
from ottla.schemas.protobuf.tokens import whole_number
from ottla.schemas.schema import InvalidSchema

T = FieldDescriptorProto
_RANGES = {
    **dict.fromkeys((T.TYPE_INT32, T.TYPE_SINT32, T.TYPE_SFIXED32), (-(2**31), 2**31 - 1)),
    **dict.fromkeys((T.TYPE_INT64, T.TYPE_SINT64, T.TYPE_SFIXED64), (-(2**63), 2**63 - 1)),
    **dict.fromkeys((T.TYPE_UINT32, T.TYPE_FIXED32), (0, 2**32 - 1)),
    **dict.fromkeys((T.TYPE_UINT64, T.TYPE_FIXED64), (0, 2**64 - 1)),
}
_BOOLEANS = {"true": True, "false": False}


class WrongValue(ValueError):
    """A literal is not a value of its field's type; the message says why."""


def scalar(kind: int, value: Value) -> Any:
    """Return the value of a field of a scalar type (enums excepted). Raises WrongValue."""
    if not isinstance(value, Literal):
        raise WrongValue("must be a single value")
    if kind in _RANGES:
        return _integer(value, *_RANGES[kind])
    if kind in (T.TYPE_DOUBLE, T.TYPE_FLOAT):
        number = floating(value)
        return struct.unpack("f", struct.pack("f", number))[0] if kind == T.TYPE_FLOAT and _fits(number) else number
    if kind == T.TYPE_BOOL:
        if value.kind is not LiteralKind.WORD or value.text not in _BOOLEANS:
            raise WrongValue("must be true or false")
        return _BOOLEANS[value.text]
    if value.kind is not LiteralKind.STRING:
        raise WrongValue("must be a string")
    if kind == T.TYPE_BYTES:
        return value.data
    try:
        return value.data.decode()
    except UnicodeDecodeError:
        raise WrongValue("must be UTF-8") from None


def _fits(number: float) -> bool:
    return math.isfinite(number) and abs(number) <= 3.4028234663852886e38


def _integer(value: Literal, low: int, high: int) -> int:
    text = value.text.removeprefix("-")
    number = whole_number(text) if value.kind is LiteralKind.NUMBER else None
    if number is None:
        raise WrongValue("must be a whole number")
    number = -number if text != value.text else number
    if not low <= number <= high:
        raise WrongValue(f"must be from {low} to {high}")
    return number


def floating(value: Literal) -> float:
    text = value.text.removeprefix("-")
    sign = -1.0 if text != value.text else 1.0
    if value.kind is LiteralKind.WORD and text.lower() in ("inf", "infinity", "nan"):
        return sign * float(text)
    if value.kind is not LiteralKind.NUMBER:
        raise WrongValue("must be a number")
    number = whole_number(text)
    return sign * (float(text.rstrip("fF")) if number is None else float(number))


def default_text(made: FieldDescriptorProto, option: ProtoOption) -> str:
    """Return a default value as descriptors spell it. Raises InvalidSchema."""
    try:
        return _default_text(made, option.value)
    except WrongValue as wrong:
        line, column = option.position
        where = f"line {line}, column {column}: " if line else ""
        raise InvalidSchema(f"{where}the default value of {made.name} {wrong}") from None


def _default_text(made: FieldDescriptorProto, value: Value) -> str:
    if made.label == T.LABEL_REPEATED or made.type in (T.TYPE_MESSAGE, T.TYPE_GROUP):
        raise WrongValue("cannot be: neither repeated fields nor messages have one")
    if made.type == T.TYPE_ENUM:
        if not isinstance(value, Literal) or value.kind is not LiteralKind.WORD:
            raise WrongValue("must be the name of a value of the enum")
        return value.text
    if made.type == T.TYPE_BYTES and isinstance(value, Literal) and value.kind is not LiteralKind.STRING:
        # Confluent's registry returns default values of bytes without quotes.
        value = Literal(LiteralKind.STRING, data=value.text.encode())
    found = scalar(made.type, value)
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        # A float's default is kept as written, to the precision of a double.
        return _shortest(floating(value)) if isinstance(value, Literal) else ""
    if isinstance(found, bytes):
        return str(CEscape(found, as_utf8=False))
    return str(found)


def _shortest(number: float) -> str:
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    short = f"{number:.15g}"
    return short if float(short) == number else f"{number:.17g}"
