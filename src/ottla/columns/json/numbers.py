"""Numbers of JSON text, exactly: integers of 64 bits in any spelling, and the nearest doubles.

Most doubles have so few digits that one multiplication or division of exact doubles gives the exact result. Numbers
with more digits are `HARD`: they are collected, and converted together afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ottla.columns.loops import Bytes, Doubles, Longs, compiled

FINE, NOT_WHOLE, TOO_LARGE, HARD = range(4)

_LOWEST = -(2**63)
_EXACT = 2**53
_POWERS: Doubles = np.array([10.0**power for power in range(23)])
# The digits of the least integer whose nearest double is infinity.
_INFINITE: Bytes = np.frombuffer(str(2**1024 - 2**970).encode(), np.uint8)
_FAR = np.int64(10**12)


@compiled
def exponent(text: Bytes, at: Any, end: Any) -> Any:
    """Return the number after an e; a very large one may be replaced by another that gives the same result."""
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    value = np.int64(0)
    for index in range(at, end):
        if value < _FAR:
            value = value * 10 + np.int64(text[index]) - 48
    return -value if negative else value


@compiled
def whole(text: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Return an integer, and whether it is one: FINE, NOT_WHOLE or TOO_LARGE."""
    negative = text[at] == 45
    if negative:
        at += 1
    if end - at <= 18:
        plain = np.int64(0)
        for index in range(at, end):
            digit = np.int64(text[index]) - 48
            if digit < 0 or digit > 9:
                plain = np.int64(-1)
                break
            plain = plain * 10 + digit
        if plain >= 0:
            return -plain if negative else plain, FINE
    # The digits up to the last that is not 0, and the power of ten that follows them.
    last = np.int64(-1)
    power = np.int64(0)
    point = np.int64(-1)
    stop = np.int64(end)
    for index in range(at, end):
        byte = text[index]
        if byte == 46:
            point = np.int64(index)
        elif byte == 101 or byte == 69:
            power += exponent(text, index + 1, end)
            stop = np.int64(index)
            break
        elif byte != 48:
            last = np.int64(index)
    if last < 0:
        return np.int64(0), FINE
    if point < 0:
        point = stop
    power += point - last - 1 if point > last else point - last
    if power < 0:
        return np.int64(0), NOT_WHOLE
    value = np.int64(0)  # negative, because there is one more negative number than positive ones
    for index in range(at, last + 1):
        if text[index] == 46:
            continue
        digit = np.int64(text[index]) - 48
        if value < -922337203685477580 or (value == -922337203685477580 and digit > 8):
            return np.int64(0), TOO_LARGE
        value = value * 10 - digit
    while power > 0:
        if value < -922337203685477580:
            return np.int64(0), TOO_LARGE
        value *= 10
        power -= 1
    if negative:
        return value, FINE
    if value == _LOWEST:
        return np.int64(0), TOO_LARGE
    return -value, FINE


@compiled
def double(text: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Return a double, and whether it is one: FINE, HARD or TOO_LARGE."""
    negative = text[at] == 45
    if negative:
        at += 1
    value = np.int64(0)
    significant = np.int64(0)
    power = np.int64(0)
    behind_point = False
    stop = np.int64(end)
    for index in range(at, end):
        byte = text[index]
        if byte == 46:
            behind_point = True
        elif byte == 101 or byte == 69:
            power += exponent(text, index + 1, end)
            stop = np.int64(index)
            break
        else:
            if significant or byte != 48:
                significant += 1
                if significant <= 18:
                    value = value * 10 + np.int64(byte) - 48
            if behind_point:
                power -= 1
    if significant == 0:
        return -0.0 if negative else 0.0, FINE
    if significant <= 18 and value <= _EXACT and -22 <= power <= 22:
        made = np.float64(value)
        made = made * _POWERS[power] if power >= 0 else made / _POWERS[-power]
        return -made if negative else made, FINE
    before_point = significant + power
    if before_point > 309 or (before_point == 309 and is_infinite(text, at, stop)):
        return 0.0, TOO_LARGE
    return 0.0, HARD


@compiled
def is_infinite(text: Bytes, at: Any, stop: Any) -> bool:
    """Return whether a number with 309 digits before the point is too large for a double."""
    place = np.int64(0)
    for index in range(at, stop):
        byte = text[index]
        if byte == 46 or (place == 0 and byte == 48):
            continue
        if place == len(_INFINITE):
            return True
        if byte != _INFINITE[place]:
            return bool(byte > _INFINITE[place])
        place += 1
    return bool(place == len(_INFINITE))


@compiled
def gather(text: Bytes, hard: Longs, count: Any, chars: Bytes, ends: Any) -> None:
    """Copy the text of hard numbers, one after the other."""
    to = 0
    for row in range(count):
        for index in range(hard[row, 0], hard[row, 1]):
            chars[to] = text[index]
            to += 1
        ends[row + 1] = to


def read_hard(text: Bytes, hard: Longs) -> Doubles:
    """Convert numbers that have too many digits for one operation; `hard` has their places: (begin, end, ...)."""
    sizes = hard[:, 1] - hard[:, 0]
    chars, ends = np.empty(int(sizes.sum()), np.uint8), np.zeros(len(hard) + 1, np.int64)
    gather(text, hard, len(hard), chars, ends)
    texts = pa.Array.from_buffers(pa.large_string(), len(hard), [None, pa.py_buffer(ends), pa.py_buffer(chars)])
    try:
        made: Doubles = texts.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        made = np.array([float(each) for each in texts.to_pylist()])
    return made
