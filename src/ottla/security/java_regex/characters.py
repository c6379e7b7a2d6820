"""What Java's classes, `.`, `^`, `$` and `\\b` mean without flags: ASCII, and five characters that end a line."""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import Final

from ottla.security.java_regex.syntax import Holds

_LINE_ENDS: Final = frozenset("\n\r\x85\u2028\u2029")
_DIGITS: Final = frozenset(string.digits)
_SPACES: Final = frozenset(" \t\n\x0b\f\r")
_WORD: Final = frozenset(string.ascii_letters + string.digits + "_")
_LETTERS: Final = frozenset(string.ascii_letters)

NAMED: Final[dict[str, Holds]] = {
    "d": _DIGITS.__contains__,
    "D": lambda char: char not in _DIGITS,
    "s": _SPACES.__contains__,
    "S": lambda char: char not in _SPACES,
    "w": _WORD.__contains__,
    "W": lambda char: char not in _WORD,
}


def any_character(char: str) -> bool:
    return True


def in_line(char: str) -> bool:
    return char not in _LINE_ENDS


def one_character(char: str, fold: bool) -> Holds:
    """Return the test for one character; with `fold`, for both cases of an ASCII letter."""
    return frozenset((char, char.swapcase())).__contains__ if fold and char in _LETTERS else char.__eq__


def any_of(tests: Iterable[Holds], fold: bool, negated: bool) -> Holds:
    """Return the test of a class in brackets."""
    parts = tuple(tests)

    def holds(char: str) -> bool:
        found = any(test(char) for test in parts)
        if fold and not found and char in _LETTERS:
            found = any(test(char.swapcase()) for test in parts)
        return found != negated

    ascii_holds = frozenset(filter(holds, map(chr, range(128)))).__contains__
    return lambda char: ascii_holds(char) if char < "\x80" else holds(char)


def at_begin(text: str, at: int) -> bool:
    return at == 0


def at_end(text: str, at: int) -> bool:
    return at == len(text)


def at_last_line_end(text: str, at: int) -> bool:
    """At the end, or before the end of the last line, of which \\r\\n is one."""
    rest = text[at : at + 3]
    if rest == "\n":
        return at == 0 or text[at - 1] != "\r"
    return rest in ("", "\r\n") or (len(rest) == 1 and rest in _LINE_ENDS)


def at_word_edge(text: str, at: int) -> bool:
    before = at > 0 and text[at - 1] in _WORD
    return before != (at < len(text) and text[at] in _WORD)


def at_no_word_edge(text: str, at: int) -> bool:
    return not at_word_edge(text, at)
