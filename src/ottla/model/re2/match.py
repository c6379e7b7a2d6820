"""Pattern and Search: an expression as a program, all states of which are followed at once; each step is cached.

There is no backtracking: a character takes at most as much work as the program has steps, and almost none if its step
is cached. The work of a search is counted, and the search fails when it has taken too much.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

from ottla.model import limits
from ottla.model.re2.cache import SizedCache
from ottla.model.re2.chars import Chars
from ottla.model.re2.classes import is_word
from ottla.model.re2.nodes import At, Node, One, PositionTest, RegexError, Repeat, Sequence
from ottla.model.re2.parse import parse

_TOO_BIG = "expression too large"
_CHARS_PER_WORK = 4  # this many characters with cached steps count as one unit of work
_MAKING_WORK = 5  # the work of making one step of a program
_ASKING_WORK = 10  # the work of asking a pattern that is cached, besides that of the text
_OUTSIDE = ""  # stands for the position before the first or after the last character


class TooDear(RegexError):
    """A search takes more work than it may."""

    def __init__(self) -> None:
        super().__init__("expression takes too much work")


class _Step(NamedTuple):
    """An instruction of the program: go on at `to` after one of `chars`, or, if `chars` is None, without a character,
    provided the position test `place` (if any) holds.
    """

    chars: Chars | None
    place: PositionTest | None
    to: tuple[int, ...]


class Stop:
    """The states that a program can be in after some text, the kind of its last character, and the cached stops."""

    __slots__ = ("accepts", "before", "states", "to")

    def __init__(self, states: frozenset[int], before: str, accepts: bool) -> None:
        self.states = states
        self.before = before
        self.accepts = accepts
        self.to: dict[str, Stop] = {}


class Pattern:
    """A compiled regular expression. Raises RegexError."""

    def __init__(self, text: str) -> None:
        if len(text) > limits.REGEX_CHARS_MAX:
            raise RegexError(_TOO_BIG)
        self._chars = len(text)
        self._steps: list[_Step] = []
        self._room = limits.REGEX_MEMORY_MAX
        self._work = 0
        # the first step that is made is the accepting one
        start = self._add(parse(text), self._step(_Step(None, None, ())))
        self.making_work = len(self._steps) * _MAKING_WORK
        self._stops: dict[tuple[frozenset[int], str], Stop] = {}
        self.start = self._stop(frozenset((start,)), _OUTSIDE)

    @property
    def size(self) -> int:
        """The memory it takes now, as a number of parts."""
        return self._chars + len(self._steps) + limits.REGEX_MEMORY_MAX - self._room

    def matches(self, text: str, work_max: int) -> tuple[bool, int]:
        """Return whether the whole text matches, and the work it took.

        Raises TooDear if it takes more than `work_max`.
        """
        self._work = 0
        stop = self.start
        for char in text:
            stop = stop.to.get(char) or self._after(stop, char)
            if self._work > work_max:
                raise TooDear
        return stop.accepts, self._work

    def after(self, stop: Stop, char: str) -> tuple[Stop, int]:
        """Return the stop after a character that is not cached, and the work it took."""
        before = self._work
        return self._after(stop, char), self._work - before

    def _after(self, stop: Stop, char: str) -> Stop:
        found: set[int] = set()
        for state in self._reach(stop.states, stop.before, char):
            chars = self._steps[state].chars
            if chars is not None:
                self._work += len(chars.kinds)
                if char in chars:
                    found.add(self._steps[state].to[0])
        after = self._stop(frozenset(found), _kind(char))
        if self._has_room(1):
            stop.to[char] = after
        return after

    def _stop(self, states: frozenset[int], before: str) -> Stop:
        known = self._stops.get((states, before))
        if known is not None:
            return known
        stop = Stop(states, before, 0 in self._reach(states, before, _OUTSIDE))
        if self._has_room(1 + len(states)):
            self._stops[states, before] = stop
        return stop

    def _has_room(self, size: int) -> bool:
        _MADE.grew(size)
        self._room -= min(size, self._room)
        return self._room > 0

    def _reach(self, states: frozenset[int], before: str, char: str) -> set[int]:
        """Return all states that can be reached without reading a character."""
        found: set[int] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state not in found:
                found.add(state)
                step = self._steps[state]
                if step.chars is None and (step.place is None or _is_at(step.place, before, char)):
                    todo += step.to
        self._work += len(found)
        return found

    # --- making the program, from its end

    def _step(self, step: _Step) -> int:
        if len(self._steps) >= limits.REGEX_STEPS_MAX:
            raise RegexError(_TOO_BIG)
        self._steps.append(step)
        return len(self._steps) - 1

    def _add(self, node: Node, to: int) -> int:
        """Add the steps that match the node and go on at `to`; return the first.

        An empty node is also a step, so that it counts.
        """
        if isinstance(node, One):
            return self._step(_Step(node.chars, None, (to,)))
        if isinstance(node, At):
            return self._step(_Step(None, node.place, (to,)))
        if isinstance(node, Sequence):
            for item in reversed(node.items):
                to = self._add(item, to)
            return to if node.items else self._step(_Step(None, None, (to,)))
        if isinstance(node, Repeat):
            return self._repeat(node, to)
        return self._step(_Step(None, None, tuple(self._add(item, to) for item in node.items)))

    def _repeat(self, node: Repeat, to: int) -> int:
        if node.most == 0:
            return self._step(_Step(None, None, (to,)))
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


class Search:
    """One use of a pattern on any number of texts, with a bound on the work for all of them together."""

    __slots__ = ("_left", "_pattern")

    def __init__(self, pattern: Pattern, work_max: int = limits.REGEX_WORK_MAX) -> None:
        self._pattern = pattern
        self._left = work_max

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches. Raises RegexError."""
        found, work = self._pattern.matches(text, self._left)
        self._left -= work
        return found

    def matching(self, texts: Iterable[str]) -> Generator[None, None, frozenset[str]]:
        """Return the texts that match, in steps of some milliseconds. Raises RegexError."""
        found = []
        spent = 0
        for text in texts:
            stop = self._pattern.start
            for char in text:
                after = stop.to.get(char)
                if after is None:
                    after, work = self._pattern.after(stop, char)
                    spent += work
                    self._left -= work
                    if self._left < 0:
                        raise TooDear
                    if spent > limits.REGEX_WORK_PER_STEP:
                        yield
                        spent = 0
                stop = after
            spent += len(text) // _CHARS_PER_WORK
            if stop.accepts:
                found.append(text)
            if spent > limits.REGEX_WORK_PER_STEP:
                yield
                spent = 0
        return frozenset(found)


def _is_at(place: PositionTest, before: str, char: str) -> bool:
    if place is PositionTest.BEGIN:
        return before == _OUTSIDE
    if place is PositionTest.END:
        return char == _OUTSIDE
    if place is PositionTest.LINE_BEGIN:
        return before in (_OUTSIDE, "\n")
    if place is PositionTest.LINE_END:
        return char in (_OUTSIDE, "\n")
    return (is_word(before) != is_word(char)) == (place is PositionTest.WORD_EDGE)


def _kind(char: str) -> str:
    """Return a character that stands for all characters that position tests treat alike."""
    return "_" if is_word(char) else "\n" if char == "\n" else " "


class _Compiled:
    """A compiled pattern, or why there is none; and the work of making it that nobody has been charged for yet."""

    __slots__ = ("_chars", "error", "owed", "pattern")

    def __init__(self, text: str) -> None:
        self._chars = len(text)
        self.pattern: Pattern | None = None
        self.error = ""
        try:
            self.pattern = Pattern(text)
        except RegexError as error:
            self.error = str(error)
            self.owed = limits.REGEX_STEPS_MAX * _MAKING_WORK if self.error == _TOO_BIG else len(text) * _MAKING_WORK
        else:
            self.owed = self.pattern.making_work

    @property
    def size(self) -> int:
        return self._chars if self.pattern is None else self.pattern.size


class Allowance:
    """The work that any number of patterns may take together: that of making them, too, unless they are cached."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def matches(self, regex: str, text: str) -> bool:
        """Return whether the whole text matches. Raises TooDear, and RegexError if `regex` is none."""
        made = _MADE.of(regex)
        self.left -= made.owed + _ASKING_WORK + len(text) // _CHARS_PER_WORK
        made.owed = 0
        if self.left < 0:
            raise TooDear
        if made.pattern is None:
            raise RegexError(made.error)
        try:
            found, work = made.pattern.matches(text, self.left)
        except TooDear:
            self.left = 0
            raise
        self.left -= work
        return found


_MADE = SizedCache(_Compiled, limits.REGEX_PATTERNS_MAX, limits.REGEX_CACHE_MAX)


def pattern_of(text: str) -> Pattern:
    """Return the compiled pattern, cached. Raises RegexError."""
    made = _MADE.of(text)
    if made.pattern is None:
        raise RegexError(made.error)
    return made.pattern
