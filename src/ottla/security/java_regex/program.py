"""MatchProgram: the steps of a regular expression, and the search for the way through them that Java would find."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.model import limits
from ottla.security.java_regex.characters import any_character, at_begin
from ottla.security.java_regex.syntax import (
    Capture,
    Character,
    Concatenation,
    Expression,
    Holds,
    InvalidRule,
    Place,
    PlaceHolds,
    Repetition,
)

Spans = dict[int, int]  # 2n: where group n begins, 2n + 1: where it ends; group 0 is the whole match


class TooMuchWork(Exception):
    """The rules take more work with a name than a client may cause."""


class MatchingWork:
    """What is left of the steps that all rules together may take with one name."""

    __slots__ = ("left",)

    def __init__(self, most: int = limits.PRINCIPAL_RULES_WORK_MAX) -> None:
        self.left = most


_CHARACTER: Final = 0  # go on if the character passes `test`
_FORK: Final = 1  # go on; if that fails, go on at `other`
_SAVE: Final = 2  # note the position as number `other`, go on
_PLACE: Final = 3  # go on if the position passes `place`
_END: Final = 4


class _Step(NamedTuple):
    kind: int
    to: int
    other: int = 0
    test: Holds = any_character
    place: PlaceHolds = at_begin


class _Saved(NamedTuple):
    """A position that was noted. The newest comes first, so that going back costs nothing."""

    number: int
    at: int
    before: _Saved | None


class MatchProgram:
    """Raises InvalidRule if the expression has more than `steps_max` steps."""

    def __init__(self, expression: Expression, steps_max: int = limits.REGEX_STEPS_MAX) -> None:
        self._steps_max = steps_max
        self._steps = [_Step(_END, 0)]
        self._first = self._add(expression, 0)

    def __len__(self) -> int:
        return len(self._steps)

    def search(self, text: str, begin: int, work: MatchingWork) -> Spans | None:
        """Return the first match that begins at `begin` or later; raise TooMuchWork."""
        failed: set[int] = set()
        for at in range(begin, len(text) + 1):
            found = self._run(text, at, False, failed, work)
            if found is not None:
                return found
        return None

    def matches(self, text: str, work: MatchingWork) -> bool:
        """Return whether the whole text matches; raise TooMuchWork."""
        return self._run(text, 0, True, set(), work) is not None

    def _run(self, text: str, begin: int, whole: bool, failed: set[int], work: MatchingWork) -> Spans | None:
        """Return the match at `begin`. What is added to `failed` leads nowhere (a step and a position)."""
        steps, end, size = self._steps, len(text), len(text) + 1
        room = len(failed) + work.left
        todo: list[tuple[int, int, _Saved | None]] = [(self._first, begin, None)]
        try:
            while todo:
                number, at, saved = todo.pop()
                while (key := number * size + at) not in failed:
                    if len(failed) >= room:
                        raise TooMuchWork
                    failed.add(key)
                    kind, number, other, test, place = steps[number]
                    if kind == _CHARACTER:
                        if at == end or not test(text[at]):
                            break
                        at += 1
                    elif kind == _FORK:
                        todo.append((other, at, saved))
                    elif kind == _SAVE:
                        saved = _Saved(other, at, saved)
                    elif kind == _PLACE:
                        if not place(text, at):
                            break
                    elif not whole or at == end:
                        return _spans(begin, at, saved)
                    else:
                        break
            return None
        finally:
            work.left = room - len(failed)

    # --- making the program, from its end

    def _step(self, step: _Step) -> int:
        if len(self._steps) >= self._steps_max:
            raise InvalidRule("it is too large")
        self._steps.append(step)
        return len(self._steps) - 1

    def _add(self, part: Expression, to: int) -> int:
        """Add the steps that match the part and go on at `to`; return the first."""
        if isinstance(part, Character):
            return self._step(_Step(_CHARACTER, to, test=part.test))
        if isinstance(part, Place):
            return self._step(_Step(_PLACE, to, place=part.test))
        if isinstance(part, Concatenation):
            for item in reversed(part.items):
                to = self._add(item, to)
            return to if part.items else self._step(_Step(_FORK, to, to))  # a step, so that it counts
        if isinstance(part, Capture):
            inner = self._add(part.item, self._step(_Step(_SAVE, to, 2 * part.number + 1)))
            return self._step(_Step(_SAVE, inner, 2 * part.number))
        if isinstance(part, Repetition):
            return self._repeat(part, to)
        first = self._add(part.items[-1], to)
        for item in reversed(part.items[:-1]):
            first = self._step(_Step(_FORK, self._add(item, to), first))
        return first

    def _repeat(self, part: Repetition, to: int) -> int:
        """Required parts come first, optional ones last."""
        required = part.least
        if part.most == 0:
            return self._step(_Step(_FORK, to, to))
        if part.most is None:
            again = self._step(_Step(_FORK, 0, 0))
            body = self._add(part.item, again)
            self._steps[again] = self._fork(part, body, to)
            to = again
        else:
            end = to
            for _ in range(part.most - required):
                to = self._step(self._fork(part, self._add(part.item, to), end))
        for _ in range(required):
            to = self._add(part.item, to)
        return to

    @staticmethod
    def _fork(part: Repetition, body: int, out: int) -> _Step:
        return _Step(_FORK, body, out) if part.greedy else _Step(_FORK, out, body)


def _spans(begin: int, end: int, saved: _Saved | None) -> Spans:
    found = {0: begin, 1: end}
    while saved is not None:
        found.setdefault(saved.number, saved.at)
        saved = saved.before
    return found
