"""Chars: classes of characters. They are never spelt out; a character is asked whether it belongs.

Without regard to case, a character belongs if one that differs only in case does, by Unicode's simple folding: `k` is
alike to `K` and to the sign for Kelvin, `ß` to its capital but never to `ss`.
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
    """Characters that have something in common, or all others."""

    test: Test
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chars:
    """The characters of any of the kinds, or those of none."""

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
    """Characters with those that differ from them only in case, themselves among them."""
    groups: dict[str, dict[str, None]] = {}
    for code in range(_CASED_MAX + 1):
        char = chr(code)
        if char.casefold() != char:
            folded = _folded(char)
            groups.setdefault(folded, {folded: None})[char] = None
    return {char: tuple(group) for group in groups.values() for char in group}


def _folded(char: str) -> str:
    """One character for one; what would become several only if that is a matter of case at all."""
    folded = char.casefold()
    if len(folded) > 1:
        folded = char.lower()
    return folded if len(folded) == 1 else char
