"""The syntax tree of an expression."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ottla.model.re2.chars import Chars


class PositionTest(Enum):
    """Conditions on a position in the text."""

    BEGIN = "begin"
    END = "end"
    LINE_BEGIN = "line begin"
    LINE_END = "line end"
    WORD_EDGE = "word edge"
    NO_WORD_EDGE = "no word edge"


@dataclass(frozen=True, slots=True)
class One:
    """One character of a class; an empty class matches nothing."""

    chars: Chars


@dataclass(frozen=True, slots=True)
class At:
    place: PositionTest


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Node
    least: int
    most: int | None  # None: any number


Node = One | At | Sequence | Choice | Repeat


class RegexError(Exception):
    """The expression is not valid, or takes too much work; the text says which."""
