"""JSON as Confluent's registry reads and writes it: Java's Jackson, compact, to the byte.

Schemas are returned as the registry parsed them, so numbers and strings are spelt as Jackson spells them. Size and
depth of the input are bounded here, so that code that walks the result may recurse.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

from ottla.model import limits
from ottla.schemas.schema import InvalidSchema

Json = Any
"""The result of `read`: dict, list, str, int, float or Decimal, bool, None."""

# Matches strings and comments, also unterminated ones: each is matched once, never again from its middle, and `*+` does
# not backtrack. So the time is linear for any text.
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|//[^\n\r]*+|/\*.*?(?:(?P<closed>\*/)|\Z)', re.DOTALL)
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def read(text: str, *, comments: bool = False, exact: bool = False) -> Json:
    """Return the value of a JSON text; `comments` as in JavaScript are skipped, `exact` keeps all
    digits of fractions.
    """
    if len(text) > limits.SCHEMA_TEXT_CHARS_MAX:
        raise InvalidSchema(f"the schema has {len(text)} characters, more than {limits.SCHEMA_TEXT_CHARS_MAX}")
    if comments and ("//" in text or "/*" in text):
        text = _COMMENT_OR_STRING.sub(_without_comment, text)
    try:
        value = json.loads(text, parse_float=_decimal if exact else float, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidSchema(_too_deep()) from None
    except (ValueError, ArithmeticError) as error:
        raise InvalidSchema(f"not JSON: {error}") from None
    _check(value)
    return value


def _without_comment(found: re.Match[str]) -> str:
    is_comment = found[0].startswith("//") or found["closed"] is not None
    return " " if is_comment else found[0]  # the parser reports an unterminated comment


def _decimal(text: str) -> Decimal:
    """Return all digits of a fraction. Refuse short texts of numbers that take gigabytes to write out."""
    value = Decimal(text)
    if not value.is_finite() or abs(value.adjusted()) > limits.SCHEMA_NUMBER_DIGITS_MAX:
        raise ValueError(f"a number has more than {limits.SCHEMA_NUMBER_DIGITS_MAX} digits")
    return value


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON value")


def _too_deep() -> str:
    return f"the schema is nested deeper than {limits.SCHEMA_DEPTH_MAX} levels"


def _check(value: Json) -> None:
    """Check the depth, and that no text has half of a surrogate pair, which no encoding can carry."""
    pending = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, str):
            if not item.isascii() and any("\ud800" <= char <= "\udfff" for char in item):
                raise InvalidSchema("a string holds half of a surrogate pair")
        elif isinstance(item, dict | list):
            if depth > limits.SCHEMA_DEPTH_MAX:
                raise InvalidSchema(_too_deep())
            if isinstance(item, dict):
                pending.extend((key, depth + 1) for key in item)
            pending.extend((child, depth + 1) for child in (item.values() if isinstance(item, dict) else item))


def write(value: Json) -> str:
    """Return compact JSON."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quote(key)}:{write(child)}" for key, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double(value)
    if isinstance(value, Decimal):
        return str(value.copy_abs() if value.is_zero() else value)
    return str(value)


def quote(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def double(value: float) -> str:
    """Return a double as Java prints it; NaN and infinities are quoted, as Jackson does."""
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    minus = "-" if sign else ""
    point = len(text) + exponent  # digits before the decimal point
    if value == 0:
        return f"{minus}0.0"
    if -3 < point <= 7:
        text = text.rjust(len(text) - point + 1, "0") if point <= 0 else text.ljust(point, "0")
        whole = max(point, 1)
        return f"{minus}{text[:whole]}.{text[whole:].rstrip('0') or '0'}"
    return f"{minus}{text[0]}.{text[1:].rstrip('0') or '0'}E{point - 1}"


def in_order(value: Json) -> Json:
    """Return the value with the keys of all objects sorted as Java sorts strings (by UTF-16 code units)."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value, key=java_order)}
    return [in_order(child) for child in value] if isinstance(value, list) else value


def java_order(text: str) -> bytes:
    """Return a sort key that sorts strings as Java compares them."""
    return text.encode("utf-16-be")
