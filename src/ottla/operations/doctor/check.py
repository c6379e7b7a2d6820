"""What a check of `ottla doctor` is: a declaration beside the function that looks.

Rules:
- A check looks at one kind of subject (`Checks`), changes nothing, and yields a `Symptom` for each thing that is wrong.
- Its id never changes: scripts know it. Title, reason and remedy are shown to users and are the rows of docs/doctor.md.
- What could not be read raises `UnseenError` when a check asks for it: such a check was not made, which is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")
_SHOWN = 5


class HealthLevel(IntEnum):
    """How bad a symptom is.

    PROBLEM: records or clients are concerned now, or a node does not start. WARNING: they will be, after a failure or
    in time.
    """

    FINE = 0
    WARNING = 1
    PROBLEM = 2


class Symptom(NamedTuple):
    """One thing that is wrong; what is None is as the check declares it."""

    what: str
    level: HealthLevel | None = None
    why: str | None = None
    do: str | None = None


class UnseenError(Exception):
    """What a check needs could not be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Check(Generic[S]):
    """One declared check."""

    id: str
    title: str  # what is wrong if it finds something
    why: str
    do: str
    level: HealthLevel
    look: Callable[[S], Iterator[Symptom]]


class Checks(Generic[S]):
    """The checks of one kind of subject, in the order of their declaration."""

    def __init__(self, title: str, doc: str) -> None:
        self.title = title
        self.doc = doc
        self.all: list[Check[S]] = []

    def check(
        self, id: str, title: str, *, why: str, do: str, level: HealthLevel = HealthLevel.WARNING
    ) -> Callable[[Callable[[S], Iterator[Symptom]]], Check[S]]:
        """Declare a check; decorates the function that looks."""

        def declare(look: Callable[[S], Iterator[Symptom]]) -> Check[S]:
            declared = Check(id, title, why, do, level, look)
            self.all.append(declared)
            return declared

        return declare


def some(things: Iterable[object]) -> str:
    """The first few of many things, and how many more there are."""
    names = [str(each) for each in things]
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
