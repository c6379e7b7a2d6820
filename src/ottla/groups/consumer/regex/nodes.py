"""What an expression is parsed into."""

from __future__ import annotations

import string
from dataclasses import dataclass
from enum import Enum

ALPHABET = string.ascii_letters + string.digits + "._-"  # what topic names consist of
ALL = frozenset(ALPHABET)
WORD = frozenset(each for each in ALPHABET if each.isalnum() or each == "_")


class Place(Enum):
    """Conditions on where in the name one is."""

    BEGIN = "begin"
    END = "end"
    WORD_EDGE = "word edge"
    NO_WORD_EDGE = "no word edge"


@dataclass(frozen=True, slots=True)
class One:
    """One character out of a set; an empty set matches nothing."""

    chars: frozenset[str]


@dataclass(frozen=True, slots=True)
class At:
    place: Place


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
EMPTY = Sequence(())


class RegexError(Exception):
    """The expression is not one; the text says why."""
