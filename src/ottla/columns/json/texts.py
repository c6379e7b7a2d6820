"""Strings that stand for other values: days, timestamps, bytes. `schemas.json.fit` defines their syntax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, Longs, compiled

_DAY_CHARS = 10
_SECOND_MICROS = 1_000_000
_DAYS_BEFORE: Longs = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365], np.int64)
_BEFORE_1970 = 719_162  # days since 0001-01-01


@compiled
def figure(text: Bytes, at: Any, count: Any, end: Any) -> Any:
    """Return the number of `count` digits; -1 if they are not digits."""
    if at + count > end:
        return np.int64(-1)
    value = np.int64(0)
    for index in range(at, at + count):
        digit = np.int64(text[index]) - 48
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = value * 10 + digit
    return value


@compiled
def day(text: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Return the days from 1970 to YYYY-MM-DD, and whether it is a valid date."""
    none = (np.int64(0), False)
    if at + _DAY_CHARS > end or text[at + 4] != 45 or text[at + 7] != 45:
        return none
    year, month, of_month = figure(text, at, 4, end), figure(text, at + 5, 2, end), figure(text, at + 8, 2, end)
    if year < 1 or month < 1 or month > 12 or of_month < 1:
        return none
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = _DAYS_BEFORE[month] - _DAYS_BEFORE[month - 1]
    if month == 2 and is_leap:
        days += 1
    if of_month > days:
        return none
    past = year - 1
    since = past * 365 + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE[month - 1] + of_month - 1
    if month > 2 and is_leap:
        since += 1
    return since - _BEFORE_1970, True


@compiled
def clock(text: Bytes, at: Any, end: Any, gap: Any) -> tuple[Any, Any]:
    """Return the seconds of HH:MM (or, without a gap, HHMM), and the position after it; -1 if it is invalid."""
    hours, minutes = figure(text, at, 2, end), figure(text, at + 2 + gap, 2, end)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59 or (gap and text[at + 2] != 58):
        return np.int64(0), np.int64(-1)
    return hours * 3600 + minutes * 60, at + 4 + gap


@compiled
def moment(text: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Return the microseconds from 1970 to a timestamp, and whether it is valid; finer parts of a
    second are cut off.
    """
    none = (np.int64(0), False)
    days, is_day = day(text, at, end)
    if not is_day:
        return none
    at += _DAY_CHARS
    seconds = days * 86_400
    micros = np.int64(0)
    if at == end:
        return seconds * _SECOND_MICROS, True
    if text[at] != 84 and text[at] != 116 and text[at] != 32:
        return none
    of_day, at = clock(text, at + 1, end, 1)
    if at < 0:
        return none
    seconds += of_day
    if at < end and text[at] == 58:
        more = figure(text, at + 1, 2, end)
        if more < 0 or more > 59:
            return none
        seconds += more
        at += 3
        if at < end and text[at] == 46:
            at += 1
            begin = at
            unit = np.int64(_SECOND_MICROS)
            while at < end and 48 <= text[at] <= 57:
                unit //= 10
                micros += (np.int64(text[at]) - 48) * unit
                at += 1
            if at == begin:
                return none
    if at < end and (text[at] == 90 or text[at] == 122):
        at += 1
    elif at < end and (text[at] == 43 or text[at] == 45):
        is_east = text[at] == 43
        offset, at = clock(text, at + 1, end, 1 if at + 3 < end and text[at + 3] == 58 else 0)
        if at < 0:
            return none
        seconds += -offset if is_east else offset
    return seconds * _SECOND_MICROS + micros, bool(at == end)


@compiled
def sextet(byte: Any) -> Any:
    """Return the value of a base64 character; -1 if it is none."""
    if 65 <= byte <= 90:
        return np.int64(byte) - 65
    if 97 <= byte <= 122:
        return np.int64(byte) - 71
    if 48 <= byte <= 57:
        return np.int64(byte) + 4
    if byte == 43:
        return np.int64(62)
    return np.int64(63) if byte == 47 else np.int64(-1)


@compiled
def base64(text: Bytes, at: Any, end: Any) -> Any:
    """Decode base64 in place; return the number of bytes, or -1 if it is invalid."""
    size = end - at
    if size % 4:
        return np.int64(-1)
    padding = np.int64(0)
    while padding < 2 and padding < size and text[end - 1 - padding] == 61:
        padding += 1
    to, bits, held = np.int64(at), np.int64(0), np.int64(0)
    for index in range(at, end - padding):
        value = sextet(text[index])
        if value < 0:
            return np.int64(-1)
        bits = (bits << 6 | value) & 0xFFFF
        held += 6
        if held >= 8:
            held -= 8
            text[to] = bits >> held & 255
            to += 1
    return to - at
