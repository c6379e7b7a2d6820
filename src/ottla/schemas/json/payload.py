"""JSON text by RFC 8259 and nothing more: what a payload must be before it is checked against a schema.

Rules:
- UTF-8 without a byte order mark. No NaN, no infinity, no comments, nothing after the value.
- Strings are Unicode: half of a surrogate pair is not a character.
- Of a repeated name the last value counts.
- Numbers are exact: 1.0 and 1e0 are the integer 1; 1.0000000000000000000001 is no integer.
- Values nest at most `JSON_DEPTH_MAX` deep.

`columns.json` reads the same in compiled loops; `tests/columns/json/test_one_meaning.py` compares the two.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ottla.model.limits import JSON_DEPTH_MAX

_TOO_DEEP = f"the payload is nested more than {JSON_DEPTH_MAX} deep"
_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
# Matches escapes, one after the other; the group is half of a surrogate pair.
_ESCAPES = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F])|.)", re.DOTALL)
# More digits than any number of 64 bits or any double has before its point; and digits that Python's int can take.
_DIGITS_MAX = 400
_INT_DIGITS_MAX = 4_000


class NotJson(ValueError):
    """The payload is not JSON text; the message says why."""


class Fraction(float):
    """A number that is not whole, though the nearest double is."""

    def is_integer(self) -> bool:
        return False


def parse(payload: bytes) -> Any:
    """Return the value of a JSON text. Raises NotJson."""
    if payload.count(b"[") + payload.count(b"{") > JSON_DEPTH_MAX and _depth(payload) > JSON_DEPTH_MAX:
        raise NotJson(_TOO_DEEP)
    try:
        text = payload.decode()
        if text.startswith("\ufeff"):
            raise ValueError("a byte order mark stands before it")
        value = (_LONG if len(text) > _INT_DIGITS_MAX else _SHORT).decode(text)
    except UnicodeDecodeError as error:
        raise NotJson(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise NotJson(_TOO_DEEP) from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    if ("\\ud" in text or "\\uD" in text) and any(found[1] for found in _ESCAPES.finditer(text)):
        raise NotJson("a string holds half of a surrogate pair")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _whole(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS_MAX else math.inf * (-1 if text[0] == "-" else 1)


def _real(text: str) -> int | float:
    """Return a number with a fraction or an exponent: an integer if it is exactly one."""
    value = float(text)
    if not value.is_integer():
        return value
    mantissa, _, exponent = text.lower().partition("e")
    integer, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (integer + fraction).lstrip("0")
    if not digits:
        return 0
    if value == 0:
        return Fraction(value)  # so small that the nearest double is zero
    significant = digits.rstrip("0")
    power = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
    if power < 0:
        return Fraction(value)
    whole: int = int(significant) * 10**power
    return -whole if text[0] == "-" else whole


def _depth(payload: bytes) -> int:
    depth = deepest = 0
    for found in _STRUCTURE.finditer(payload):
        if found[0] in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in b"]}":
            depth -= 1
    return deepest


# For short texts: they cannot contain an integer that is too long to be read at once.
_SHORT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_real)
_LONG = json.JSONDecoder(parse_constant=_no_constant, parse_float=_real, parse_int=_whole)
