"""Whether a parsed JSON value is what its shape says, and if not, where and why.

Rules:
- Null is fine everywhere. Integers are whole numbers of 64 bits, however they are spelt; numbers have a double.
- `date` is YYYY-MM-DD. `date-time` is RFC 3339 (`2026-01-02T03:04:05.678Z`, `+01:00`), of which a blank may stand for
  T, and the zone's colon, the seconds, the zone (then it is UTC), or the whole time of day may be missing. Leap seconds
  are none.
- base64 is RFC 4648's, with its padding and without line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ottla.model.limits import INT64_MAX
from ottla.schemas.json.shapes import Kind, Shape

# Raises Unfit.
Check = Callable[[Any], None]

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_ZONE = f"(?:[Zz]|[+-]{_HOUR}:?{_SIXTY})"
_MOMENT = re.compile(rf"([0-9]{{4}}-..-..)(?:[Tt ]{_HOUR}:{_SIXTY}(?::{_SIXTY}(?:\.[0-9]+)?)?{_ZONE}?)?")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_INF = float("inf")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Unfit(ValueError):
    """A value that is not of the type that the schema says."""


def check_of(shape: Shape) -> Check:
    """What raises Unfit for values that are not of a shape."""
    return _check(shape, "")


def _check(shape: Shape, path: str) -> Check:
    inner = _structured(shape, path) or _leaf(shape.kind, path or "the value")

    def check(value: Any) -> None:
        if value is not None:
            inner(value)

    return check


def _structured(shape: Shape, path: str) -> Check | None:
    where = path or "the value"
    if shape.kind is Kind.STRUCT:
        fields = [(name, _check(each, f"{path}.{name}" if path else name)) for name, each in shape.fields]

        def struct(value: Any) -> None:
            _expect(isinstance(value, dict), where, "is no object")
            for name, check in fields:
                if name in value:
                    check(value[name])

        return struct
    if shape.kind in (Kind.LIST, Kind.MAP):
        item = _check(shape.item, f"{where}[]")

        def items(value: Any) -> None:
            is_list = shape.kind is Kind.LIST
            _expect(isinstance(value, list if is_list else dict), where, f"is no {'array' if is_list else 'object'}")
            for each in value if is_list else value.values():
                item(each)

        return items
    return None


def _leaf(kind: Kind, where: str) -> Check:
    def check(value: Any) -> None:
        if kind is Kind.LONG:
            _whole(value, where)
        elif kind is Kind.DOUBLE:
            _number(value, where)
        elif kind is Kind.BOOLEAN:
            _expect(isinstance(value, bool), where, "is no boolean")
        elif kind is Kind.NOTHING:
            _expect(False, where, "is not null")
        elif kind is not Kind.ANY:
            _expect(isinstance(value, str), where, "is no string")
            _text(kind, value, where)

    return check


def _whole(value: Any, where: str) -> None:
    is_whole = isinstance(value, int) or (isinstance(value, float) and (value.is_integer() or abs(value) == _INF))
    _expect(is_whole and not isinstance(value, bool), where, "is no whole number")
    _expect(-INT64_MAX - 1 <= value <= INT64_MAX, where, "does not fit 64 bits")


def _number(value: Any, where: str) -> None:
    _expect(isinstance(value, int | float) and not isinstance(value, bool), where, "is no number")
    try:
        fits = abs(float(value)) < _INF
    except OverflowError:
        fits = False
    _expect(fits, where, "is too large")


def _text(kind: Kind, value: str, where: str) -> None:
    if kind is Kind.DAY:
        _expect(_is_day(value), where, "is no date (YYYY-MM-DD)")
    elif kind is Kind.MOMENT:
        found = _MOMENT.fullmatch(value)
        _expect(found is not None and _is_day(found[1]), where, "is no time (RFC 3339)")
    elif kind is Kind.BYTES:
        _expect(_BASE64.fullmatch(value) is not None, where, "is no base64")


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
