"""Where a comparison is, what it has found so far, and which pairs of schemas it has looked at.

A pair is compared once; what was found is kept relative to the pair, and put behind the path wherever the pair is met
again. A pair that is met while it is being looked at (a schema that contains itself) counts as compatible. That may
prove wrong, and others may have relied on it: so the comparison is done again, with what is then known to be
incompatible, until nothing new is known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.model import limits
from ottla.schemas.json.diff.kinds import COMPATIBLE
from ottla.schemas.json.nodes import JsonNode


class JsonDifference(NamedTuple):
    kind: str
    path: str


Found = tuple[JsonDifference, ...]
Pair = tuple[int, int]
# A comparison, which asks for the pairs inside it with `yield` (schemas.steps); some answer a question in the end.
Steps = Generator[tuple[JsonNode, JsonNode], Found, None]
Verdict = Generator[tuple[JsonNode, JsonNode], Found, bool]
Looking = Generator[tuple[JsonNode, JsonNode], Found, Found]

# Differences that are put behind another path for the price of looking at one pair.
_COPIED_AT_ONCE = 8


class TooComplex(Exception):
    """The schemas are too large to be compared."""


class Budget:
    """The work that one comparison may be, over all passes."""

    def __init__(self) -> None:
        self._left = limits.SCHEMA_PAIRS_MAX

    def spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooComplex


class Pairs:
    """What one pass over two schemas knows of their parts."""

    def __init__(self, incompatible: dict[Pair, Found], budget: Budget) -> None:
        self._known_before = incompatible
        self._budget = budget
        self._found: dict[Pair, Found] = {}
        self._under_way: set[Pair] = set()
        self.has_assumed = False

    def look(
        self, asked: tuple[JsonNode, JsonNode], comparison: Callable[[DiffContext, JsonNode, JsonNode], Steps]
    ) -> Looking:
        original, update = asked
        key = (id(original), id(update))
        found = self._found.get(key)
        self._budget.spend(1 + len(found or ()) // _COPIED_AT_ONCE)
        if found is not None:
            return found
        if key in self._under_way:
            self.has_assumed = self.has_assumed or key not in self._known_before
            return self._known_before.get(key, ())
        self._under_way.add(key)
        inner = DiffContext(())
        yield from comparison(inner, original, update)
        self._under_way.discard(key)
        found = self._found[key] = tuple(inner.found)
        return found

    def incompatible(self) -> dict[Pair, Found]:
        return {key: found for key, found in self._found.items() if not are_compatible(found)}


class DiffContext:
    """A place in the comparison of a pair, and what was found there."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path
        self.found: list[JsonDifference] = []

    def aside(self) -> DiffContext:
        """For a comparison that may come to nothing: what it finds is its own."""
        return DiffContext(self._path)

    @contextmanager
    def at(self, *steps: str) -> Iterator[None]:
        before = self._path
        self._path = (*before, *steps)
        yield
        self._path = before

    def add(self, kind: str, *steps: str) -> None:
        self.take([JsonDifference(kind, "#/" + "/".join((*self._path, *steps)))])

    def take(self, found: list[JsonDifference]) -> None:
        """Up to a bound: a schema used twice in one used twice … doubles what is found with each level. Even beyond it
        the first that does harm is kept."""
        room = max(limits.SCHEMA_DIFFERENCES_MAX - len(self.found), 0)
        if len(found) > room and self.is_compatible and are_compatible(found[:room]):
            self.found += [each for each in found[room:] if each.kind not in COMPATIBLE][:1]
        self.found += found[:room]

    def compare(self, original: JsonNode, update: JsonNode) -> Steps:
        """Asks for what is between the two, and puts it behind the path."""
        found = yield original, update
        prefix = "#/" + "/".join(self._path)
        self.take([each._replace(path=_behind(prefix, each.path)) for each in found] if self._path else list(found))

    @property
    def is_compatible(self) -> bool:
        return are_compatible(self.found)


def _behind(prefix: str, path: str) -> str:
    return prefix if path == "#/" else f"{prefix}/{path[2:]}"


def are_compatible(found: list[JsonDifference] | Found) -> bool:
    return all(each.kind in COMPATIBLE for each in found)
