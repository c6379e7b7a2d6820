"""JSON values one by one: each becomes what pyarrow takes for its type, or a reason why it cannot."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ottla.columns.json.types import is_any
from ottla.model.limits import INT64_MAX

Convert = Callable[[Any], Any]


class Unfit(ValueError):
    """A value that is not of the type that the schema says."""


def loads(text: bytes) -> Any:
    """A JSON document. Raises ValueError, for NaN too."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def converter(field: pa.Field, path: str = "") -> Convert:
    """What turns a parsed value into what pyarrow takes for a field. It raises Unfit."""
    inner = _converter(field, path or "the value")

    def convert(value: Any) -> Any:
        return None if value is None else inner(value)

    return convert


def _converter(field: pa.Field, path: str) -> Convert:
    of = field.type
    if is_any(field):
        return lambda value: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if pa.types.is_struct(of):
        fields = [
            (each.name, converter(each, each.name if path == "the value" else f"{path}.{each.name}")) for each in of
        ]

        def struct(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unfit(f"{path} is no object")
            return {name: convert(value.get(name)) for name, convert in fields}

        return struct
    if pa.types.is_list(of):
        item = converter(of.value_field, f"{path}[]")

        def items(value: Any) -> Any:
            if not isinstance(value, list):
                raise Unfit(f"{path} is no array")
            return [item(each) for each in value]

        return items
    if pa.types.is_map(of):
        entry = converter(of.item_field, f"{path}[]")

        def entries(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unfit(f"{path} is no object")
            return [(key, entry(each)) for key, each in value.items()]

        return entries
    return _leaf(of, path)


def _leaf(of: pa.DataType, path: str) -> Convert:
    if pa.types.is_int64(of):
        return lambda value: _whole(value, path)
    if pa.types.is_float64(of):
        return lambda value: _number(value, path)
    if pa.types.is_boolean(of):
        return lambda value: _checked(value, bool, f"{path} is no boolean")
    if pa.types.is_timestamp(of) or pa.types.is_date(of):
        parse = dt.date.fromisoformat if pa.types.is_date(of) else _moment
        return lambda value: _parsed(value, parse, f"{path} is no time in ISO form")
    if pa.types.is_binary(of):
        return lambda value: _parsed(value, _base64, f"{path} is no base64")
    return lambda value: _checked(value, str, f"{path} is no string")


def _checked(value: Any, kind: type, why: str) -> Any:
    if not isinstance(value, kind):
        raise Unfit(why)
    return value


def _whole(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise Unfit(f"{path} is no whole number")
    if not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise Unfit(f"{path} does not fit 64 bits")
    return int(value)


def _number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(f"{path} is no number")
    try:
        return float(value)
    except OverflowError:
        raise Unfit(f"{path} is too large") from None


def _parsed(value: Any, parse: Callable[[str], Any], why: str) -> Any:
    try:
        return parse(_checked(value, str, why))
    except (ValueError, binascii.Error, OverflowError):
        raise Unfit(why) from None


def _moment(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
