"""Topic patterns: an expression as a program whose states are all followed at once, each step remembered.

There is no backtracking: matching a name takes at most its length times the size of the program, and that is bounded.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ottla.groups.consumer.regex.nodes import WORD, At, Node, One, Place, RegexError, Repeat, Sequence
from ottla.groups.consumer.regex.parse import parse
from ottla.model import limits

_TOO_BIG = "expression too large"
_OUTSIDE = ""  # before the first and after the last character


class _Step(NamedTuple):
    """Where to go on: after one of `chars`, or (None) at once if `place` (None: anywhere) allows it."""

    chars: frozenset[str] | None
    place: Place | None
    to: tuple[int, ...]


class _Stop:
    """All states one can be in after some name, and where each further character leads."""

    __slots__ = ("accepts", "before", "states", "to")

    def __init__(self, states: frozenset[int], before: str, accepts: bool) -> None:
        self.states = states
        self.before = before
        self.accepts = accepts
        self.to: dict[str, _Stop] = {}


class TopicPattern:
    """A regular expression that whole topic names match, or not. Raises RegexError."""

    def __init__(self, text: str) -> None:
        self._steps: list[_Step] = []
        start = self._add(parse(text), self._step(_Step(None, None, ())))  # the first step that is made is the end
        self._memory: dict[tuple[frozenset[int], str], _Stop] = {}
        self._start = self._stop(frozenset((start,)), _OUTSIDE)

    def matches(self, name: str) -> bool:
        stop = self._start
        for char in name:
            stop = stop.to.get(char) or self._after(stop, char)
        return stop.accepts

    def _after(self, stop: _Stop, char: str) -> _Stop:
        steps = (self._steps[state] for state in self._reach(stop.states, stop.before, char))
        found = frozenset(step.to[0] for step in steps if step.chars is not None and char in step.chars)
        after = self._stop(found, char)
        if len(self._memory) < limits.REGEX_MEMORY_MAX:
            stop.to[char] = after
        return after

    def _stop(self, states: frozenset[int], before: str) -> _Stop:
        known = self._memory.get((states, before))
        if known is not None:
            return known
        stop = _Stop(states, before, 0 in self._reach(states, before, _OUTSIDE))
        if len(self._memory) < limits.REGEX_MEMORY_MAX:
            self._memory[states, before] = stop
        return stop

    def _reach(self, states: frozenset[int], before: str, char: str) -> set[int]:
        """All states that can be reached without a character."""
        found: set[int] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state not in found:
                found.add(state)
                step = self._steps[state]
                if step.chars is None and (step.place is None or _is_at(step.place, before, char)):
                    todo += step.to
        return found

    # --- making the program, from its end

    def _step(self, step: _Step) -> int:
        if len(self._steps) >= limits.REGEX_STEPS_MAX:
            raise RegexError(_TOO_BIG)
        self._steps.append(step)
        return len(self._steps) - 1

    def _add(self, node: Node, to: int) -> int:
        """Steps that match the node and go on at `to`; gives the first."""
        if isinstance(node, One):
            return self._step(_Step(node.chars, None, (to,)))
        if isinstance(node, At):
            return self._step(_Step(None, node.place, (to,)))
        if isinstance(node, Sequence):
            for item in reversed(node.items):
                to = self._add(item, to)
            return to
        if isinstance(node, Repeat):
            return self._repeat(node, to)
        return self._step(_Step(None, None, tuple(self._add(item, to) for item in node.items)))

    def _repeat(self, node: Repeat, to: int) -> int:
        if node.most is None:
            again = self._step(_Step(None, None, ()))
            self._steps[again] = _Step(None, None, (self._add(node.item, again), to))
            to = again
        else:
            end = to
            for _ in range(node.most - node.least):
                to = self._step(_Step(None, None, (self._add(node.item, to), end)))
        for _ in range(node.least):
            to = self._add(node.item, to)
        return to


def _is_at(place: Place, before: str, char: str) -> bool:
    if place is Place.BEGIN:
        return before == _OUTSIDE
    if place is Place.END:
        return char == _OUTSIDE
    return ((before in WORD) != (char in WORD)) == (place is Place.WORD_EDGE)


@lru_cache(limits.REGEX_PATTERNS_MAX)
def topic_pattern(text: str) -> TopicPattern:
    """The pattern, kept for the next time. Raises RegexError."""
    return TopicPattern(text)
