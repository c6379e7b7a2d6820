"""Chars: character classes. A class is never expanded; it tests whether a character belongs to it.

When case is ignored, a character belongs to a class if any character that differs from it only in case does, by
Unicode's simple folding: `k` equals `K` and the Kelvin sign, `ß` equals its capital but never `ss`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

Test = Callable[[str], bool]
_CASED_MAX = 0x1E943  # the last character that folds to another


class Ranges:
    """The characters within ranges of code points, first and last."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        self._firsts = [first for first, _ in merged]
        self._lasts = [last for _, last in merged]

    def __call__(self, char: str) -> bool:
        at = bisect_right(self._firsts, ord(char)) - 1
        return at >= 0 and ord(char) <= self._lasts[at]


@dataclass(frozen=True, slots=True)
class CharClass:
    """A test for characters, or for all characters that fail the test."""

    test: Test
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chars:
    """The characters in any of the classes `kinds`; with `negated`, those in none of them."""

    kinds: tuple[CharClass, ...]
    fold: bool = False
    negated: bool = False

    def __contains__(self, char: str) -> bool:
        alike = _alike().get(char, (char,)) if self.fold else (char,)
        return any(any(map(kind.test, alike)) != kind.negated for kind in self.kinds) != self.negated


def only(char: str, fold: bool) -> Chars:
    return Chars((CharClass(char.__eq__),), fold)


@cache
def _alike() -> dict[str, tuple[str, ...]]:
    """Return, for each character with case variants, all variants including itself."""
    groups: dict[str, dict[str, None]] = {}
    for code in range(_CASED_MAX + 1):
        char = chr(code)
        if char.casefold() != char:
            folded = _folded(char)
            groups.setdefault(folded, {folded: None})[char] = None
    return {char: tuple(group) for group in groups.values() for char in group}


def _folded(char: str) -> str:
    """Return the simple case folding of a character; if its full folding has several characters, its lower case."""
    folded = char.casefold()
    if len(folded) > 1:
        folded = char.lower()
    return folded if len(folded) == 1 else char
