"""JSON text → a tape: each value and name in the order of the text, containers with their ends.

The grammar is RFC 8259 and nothing more, as `schemas.json.payload` implements it in Python. The tape has a line per
name or value: KIND, BEGIN, END and AFTER, the line after it and all that it contains. BEGIN and END of strings are
places in `chars`, to which all strings are copied with their escapes decoded; those of other values are places in the
text itself. A name is followed by its value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, Longs, compiled, inlined
from ottla.columns.push import is_utf8
from ottla.model.limits import JSON_DEPTH_MAX

KIND, BEGIN, END, AFTER = range(4)
NULL, FALSE, TRUE, NUMBER, STRING, ARRAY, OBJECT = range(7)

NOT_JSON = np.int64(-1)
# The tape has so many free lines whenever a value begins: for the value, and for a name inside or after it.
LINES_AHEAD = 2

_QUOTE, _BACKSLASH, _COMMA, _COLON = 34, 92, 44, 58


@inlined
def blanks(text: Bytes, at: Any, end: Any) -> Any:
    """Return the position of the next character that is not whitespace."""
    while at < end and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


@compiled
def hex4(text: Bytes, at: Any, end: Any) -> Any:
    """Return the number of four hexadecimal digits; -1 if they are not hexadecimal."""
    if at + 4 > end:
        return np.int64(-1)
    value = np.int64(0)
    for index in range(at, at + 4):
        digit = np.int64(text[index])
        if 48 <= digit <= 57:
            digit -= 48
        elif 97 <= digit <= 102:
            digit -= 87
        elif 65 <= digit <= 70:
            digit -= 55
        else:
            return np.int64(-1)
        value = value * 16 + digit
    return value


@compiled
def put_char(chars: Bytes, to: Any, code: Any) -> Any:
    """Write a character as UTF-8; return the position after it."""
    if code < 0x80:
        chars[to] = code
        return to + 1
    if code < 0x800:
        chars[to], chars[to + 1] = 0xC0 | code >> 6, 0x80 | code & 63
        return to + 2
    if code < 0x10000:
        chars[to], chars[to + 1], chars[to + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
        return to + 3
    chars[to], chars[to + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 63
    chars[to + 2], chars[to + 3] = 0x80 | code >> 6 & 63, 0x80 | code & 63
    return to + 4


@compiled
def escape(text: Bytes, at: Any, end: Any, chars: Bytes, to: Any) -> tuple[Any, Any]:
    """Decode the escape after a backslash; return the positions after it in the text (negative:
    invalid) and in chars.
    """
    if at >= end:
        return NOT_JSON, to
    kind = np.int64(text[at])
    at += 1
    code = np.int64(-1)
    if kind == 117:  # u
        code = hex4(text, at, end)
        at += 4
        if 0xD800 <= code < 0xDC00:
            low = np.int64(-1)
            if at + 6 <= end and text[at] == _BACKSLASH and text[at + 1] == 117:
                low = hex4(text, at + 2, end)
            at += 6
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) if 0xDC00 <= low < 0xE000 else np.int64(-1)
        elif 0xDC00 <= code < 0xE000:
            code = np.int64(-1)
    elif kind in (_QUOTE, _BACKSLASH, 47):
        code = kind
    elif kind == 98:
        code = np.int64(8)
    elif kind == 102:
        code = np.int64(12)
    elif kind == 110:
        code = np.int64(10)
    elif kind == 114:
        code = np.int64(13)
    elif kind == 116:
        code = np.int64(9)
    if code < 0:
        return NOT_JSON, to
    return at, put_char(chars, to, code)


@compiled
def string(text: Bytes, at: Any, end: Any, chars: Bytes, begin: Any) -> tuple[Any, Any]:
    """Read a string after its opening quote; return the positions after it in the text (negative: invalid) and in
    chars.
    """
    to = begin
    high = np.int64(0)
    while at < end:
        byte = text[at]
        at += 1
        if byte == _QUOTE:
            if high >= 128 and not is_utf8(chars, begin, to - begin):
                return NOT_JSON, to
            return at, to
        if byte == _BACKSLASH:
            at, to = escape(text, at, end, chars, to)
            if at < 0:
                return NOT_JSON, to
            continue
        if byte < 32:
            return NOT_JSON, to
        high |= np.int64(byte)
        chars[to] = byte
        to += 1
    return NOT_JSON, to


@inlined
def digits(text: Bytes, at: Any, end: Any) -> Any:
    """Return the position after digits."""
    while at < end and 48 <= text[at] <= 57:
        at += 1
    return at


@compiled
def number(text: Bytes, at: Any, end: Any) -> Any:
    """Return the position after a number; negative if it is invalid."""
    if text[at] == 45:
        at += 1
    if at >= end:
        return NOT_JSON
    begin = at
    at = digits(text, at, end)
    if at == begin or (text[begin] == 48 and at > begin + 1):
        return NOT_JSON
    if at < end and text[at] == 46:
        begin = at + 1
        at = digits(text, begin, end)
        if at == begin:
            return NOT_JSON
    if at < end and (text[at] == 101 or text[at] == 69):
        at += 1
        if at < end and (text[at] == 43 or text[at] == 45):
            at += 1
        begin = at
        at = digits(text, begin, end)
        if at == begin:
            return NOT_JSON
    return at


@compiled
def literal(text: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Read true, false or null; return the position after it (negative: none of them) and its kind."""
    if at + 4 <= end and text[at] == 116 and text[at + 1] == 114 and text[at + 2] == 117 and text[at + 3] == 101:
        return at + 4, TRUE
    if at + 4 <= end and text[at] == 110 and text[at + 1] == 117 and text[at + 2] == 108 and text[at + 3] == 108:
        return at + 4, NULL
    if at + 5 <= end and text[at] == 102 and text[at + 1] == 97 and text[at + 2] == 108 and text[at + 3] == 115:
        return at + 5 if text[at + 4] == 101 else NOT_JSON, FALSE
    return NOT_JSON, NULL


@compiled
def name(text: Bytes, at: Any, end: Any, tape: Longs, line: Any, chars: Bytes, used: Any) -> tuple[Any, Any]:
    """Read a name and its colon; return the positions after them in the text (negative: invalid) and in chars."""
    at = blanks(text, at, end)
    if at >= end or text[at] != _QUOTE:
        return NOT_JSON, used
    at, to = string(text, at + 1, end, chars, used)
    if at < 0:
        return NOT_JSON, used
    tape[line, KIND], tape[line, BEGIN], tape[line, END], tape[line, AFTER] = STRING, used, to, line + 1
    at = blanks(text, at, end)
    if at >= end or text[at] != _COLON:
        return NOT_JSON, used
    return at + 1, to


@inlined
def leaf(text: Bytes, at: Any, end: Any, tape: Longs, line: Any, chars: Bytes, used: Any) -> tuple[Any, Any]:
    """Read a value that is no container; return the positions after it in the text (negative: invalid) and in chars."""
    begin, kind, byte = at, NUMBER, text[at]
    if byte == _QUOTE:
        at, to = string(text, at + 1, end, chars, used)
        tape[line, KIND], tape[line, BEGIN], tape[line, END], tape[line, AFTER] = STRING, used, to, line + 1
        return at, to
    if byte == 45 or 48 <= byte <= 57:
        at = number(text, at, end)
    else:
        at, kind = literal(text, at, end)
    tape[line, KIND], tape[line, BEGIN], tape[line, END], tape[line, AFTER] = kind, begin, at, line + 1
    return at, used


@compiled
def scan(text: Bytes, at: Any, end: Any, tape: Longs, chars: Bytes, around: Longs) -> bool:
    """Fill the tape; return False if the text is not JSON. `around` is memory for the containers around a value.

    The tape is long enough for any text of its size. If it were not, the text would count as bad: nothing is ever
    written behind the tape's end.
    """
    line = np.int64(0)
    used = np.int64(0)
    depth = np.int64(0)
    while True:
        at = blanks(text, at, end)
        if at >= end or line + LINES_AHEAD > len(tape):
            return False
        byte = text[at]
        if byte == 123 or byte == 91:
            if depth == JSON_DEPTH_MAX:
                return False
            tape[line, KIND], tape[line, BEGIN] = OBJECT if byte == 123 else ARRAY, at
            around[depth] = line
            depth += 1
            line += 1
            at = blanks(text, at + 1, end)
            if at >= end:
                return False
            if text[at] != byte + 2:  # the codes of `}` and `]` are two above their opening ones
                if byte == 123:
                    at, used = name(text, at, end, tape, line, chars, used)
                    line += 1
                    if at < 0:
                        return False
                continue
        else:
            at, used = leaf(text, at, end, tape, line, chars, used)
            line += 1
            if at < 0:
                return False
        # A value is complete, and maybe also the containers around it.
        while True:
            at = blanks(text, at, end)
            if depth == 0:
                return bool(at == end)
            if at >= end:
                return False
            top = around[depth - 1]
            is_object = tape[top, KIND] == OBJECT
            if text[at] == _COMMA:
                at += 1
                if is_object:
                    at, used = name(text, at, end, tape, line, chars, used)
                    line += 1
                    if at < 0:
                        return False
                break
            if text[at] != (125 if is_object else 93):
                return False
            at += 1
            tape[top, END], tape[top, AFTER] = at, line
            depth -= 1
