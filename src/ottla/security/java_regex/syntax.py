"""The syntax tree of a regular expression, and the error for rules that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Holds = Callable[[str], bool]  # of a character
PlaceHolds = Callable[[str, int], bool]  # of a position in a text


class InvalidRule(ValueError):
    """A rule is wrong. The text says which one and why."""


@dataclass(frozen=True, slots=True)
class Character:
    test: Holds


@dataclass(frozen=True, slots=True)
class Place:
    test: PlaceHolds


@dataclass(frozen=True, slots=True)
class Concatenation:
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The first that leads to a match is taken."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    item: Expression
    least: int
    most: int | None  # None: any number
    greedy: bool


@dataclass(frozen=True, slots=True)
class Capture:
    item: Expression
    number: int


Expression = Character | Place | Concatenation | Alternatives | Repetition | Capture


def may_be_empty(part: Expression) -> bool:
    if isinstance(part, Character):
        return False
    if isinstance(part, Concatenation):
        return all(map(may_be_empty, part.items))
    if isinstance(part, Alternatives):
        return any(map(may_be_empty, part.items))
    if isinstance(part, Repetition):
        return part.least == 0 or may_be_empty(part.item)
    return isinstance(part, Place) or may_be_empty(part.item)
