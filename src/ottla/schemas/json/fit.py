"""Whether a parsed JSON value has the type of its shape, and if not, where and why.

Rules:
- Null is accepted everywhere. Integers are whole numbers of 64 bits, in any spelling; numbers must fit a double.
- `date` is YYYY-MM-DD. `date-time` is RFC 3339 (`2026-01-02T03:04:05.678Z`, `+01:00`), where a blank may stand for T,
  and the zone's colon, the seconds, the zone (then it is UTC), or the whole time of day may be missing. Leap seconds
  are refused.
- base64 is RFC 4648's, with its padding and without line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ottla.model.limits import INT64_MAX
from ottla.schemas.json.shapes import JsonShape, ShapeKind

# Checks a value and raises Unfit.
Check = Callable[[Any], None]

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_ZONE = f"(?:[Zz]|[+-]{_HOUR}:?{_SIXTY})"
_MOMENT = re.compile(rf"([0-9]{{4}}-..-..)(?:[Tt ]{_HOUR}:{_SIXTY}(?::{_SIXTY}(?:\.[0-9]+)?)?{_ZONE}?)?")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_INF = float("inf")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Unfit(ValueError):
    """A value does not have the type of the schema."""


def check_of(shape: JsonShape) -> Check:
    """Return a function that raises Unfit for values that do not have a shape."""
    inner = _check(shape, "")

    def check(value: Any) -> None:
        if value is not None:
            inner(value)

    return check


def _check(shape: JsonShape, path: str) -> Check:
    """Return a check for values that are not null."""
    where = path or "the value"
    if shape.kind is ShapeKind.STRUCT:
        return _struct(shape, path)
    if shape.kind is ShapeKind.LIST:
        return _items(list, _check(shape.item, f"{where}[]"), where, "is no array")
    if shape.kind is ShapeKind.MAP:
        return _items(dict, _check(shape.item, f"{where}[]"), where, "is no object")
    if shape.kind in _NUMBERS:
        number = _NUMBERS[shape.kind]
        return lambda value: number(value, where)
    if shape.kind in _TEXTS:
        is_one, why = _TEXTS[shape.kind]
        return lambda value: _text(value, where, is_one, why)
    return _of_type(str, where, "is no string") if shape.kind is ShapeKind.STRING else _others(shape.kind, where)


def _others(kind: ShapeKind, where: str) -> Check:
    if kind is ShapeKind.BOOLEAN:
        return _of_type(bool, where, "is no boolean")
    return _of_type((), where, "is not null") if kind is ShapeKind.NOTHING else lambda value: None


def _struct(shape: JsonShape, path: str) -> Check:
    fields = {name: _check(each, f"{path}.{name}" if path else name) for name, each in shape.fields}

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise Unfit(f"{path or 'the value'} is no object")
        for name, each in value.items():
            if each is not None and name in fields:
                fields[name](each)

    return check


def _items(kind: type, item: Check, where: str, why: str) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, kind):
            raise Unfit(f"{where} {why}")
        held: Any = value
        for each in held.values() if kind is dict else held:
            if each is not None:
                item(each)

    return check


def _of_type(kind: type | tuple[()], where: str, why: str) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, kind):
            raise Unfit(f"{where} {why}")

    return check


def _text(value: Any, where: str, is_one: Callable[[str], bool], why: str) -> None:
    _expect(isinstance(value, str), where, "is no string")
    _expect(is_one(value), where, why)


def _whole(value: Any, where: str) -> None:
    if type(value) is int and -INT64_MAX <= value <= INT64_MAX:
        return
    is_whole = isinstance(value, int) or (isinstance(value, float) and (value.is_integer() or abs(value) == _INF))
    _expect(is_whole and not isinstance(value, bool), where, "is no whole number")
    _expect(-INT64_MAX - 1 <= value <= INT64_MAX, where, "does not fit 64 bits")


def _number(value: Any, where: str) -> None:
    if type(value) is float and -_INF < value < _INF:
        return
    _expect(isinstance(value, int | float) and not isinstance(value, bool), where, "is no number")
    try:
        fits = abs(float(value)) < _INF
    except OverflowError:
        fits = False
    _expect(fits, where, "is too large")


def _is_moment(text: str) -> bool:
    found = _MOMENT.fullmatch(text)
    return found is not None and _is_day(found[1])


def _is_base64(text: str) -> bool:
    return _BASE64.fullmatch(text) is not None


def _is_day(text: str) -> bool:
    found = _DAY.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    if not (year >= 1 and 1 <= month <= 12):
        return False
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + (month == 2 and is_leap)


def _expect(fits: bool, where: str, why: str) -> None:
    if not fits:
        raise Unfit(f"{where} {why}")


_NUMBERS = {ShapeKind.LONG: _whole, ShapeKind.DOUBLE: _number}
_TEXTS = {
    ShapeKind.DAY: (_is_day, "is no date (YYYY-MM-DD)"),
    ShapeKind.MOMENT: (_is_moment, "is no time (RFC 3339)"),
    ShapeKind.BYTES: (_is_base64, "is no base64"),
}
