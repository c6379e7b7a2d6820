"""Where a comparison is, what it has found so far, and which pairs of schemas it has looked at.

A pair is compared once; what was found is kept relative to the pair, and put behind the path wherever the pair is met
again. A pair that is met while it is being looked at (a schema that contains itself) counts as compatible. That may
prove wrong, and others may have relied on it: so the comparison is done again, with what is then known to be
incompatible, until nothing new is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.model import limits
from ottla.schemas.json.diff.kinds import COMPATIBLE
from ottla.schemas.json.nodes import Node


class Difference(NamedTuple):
    kind: str
    path: str


Found = tuple[Difference, ...]
Pair = tuple[int, int]


class TooComplex(Exception):
    """The schemas are too large or too deeply nested to be compared."""


class Pairs:
    """What one pass over two schemas knows of their parts."""

    def __init__(self, incompatible: dict[Pair, Found]) -> None:
        self._known_before = incompatible
        self._found: dict[Pair, Found] = {}
        self._under_way: set[Pair] = set()
        self.has_assumed = False

    def compare(self, original: Node, update: Node, comparison: Callable[[Context], None]) -> Found:
        key = (id(original), id(update))
        found = self._found.get(key)
        if found is not None:
            return found
        if key in self._under_way:
            self.has_assumed = self.has_assumed or key not in self._known_before
            return self._known_before.get(key, ())
        if len(self._under_way) > limits.SCHEMA_TYPES_DEPTH_MAX or len(self._found) > limits.SCHEMA_PAIRS_MAX:
            raise TooComplex
        self._under_way.add(key)
        inner = Context(self, ())
        comparison(inner)
        self._under_way.discard(key)
        found = self._found[key] = tuple(inner.found)
        return found

    def incompatible(self) -> dict[Pair, Found]:
        return {key: found for key, found in self._found.items() if not are_compatible(found)}


class Context:
    """A place in the comparison. Contexts beside each other share what is known of pairs."""

    def __init__(self, pairs: Pairs, path: tuple[str, ...]) -> None:
        self._pairs = pairs
        self._path = path
        self.found: list[Difference] = []

    def aside(self) -> Context:
        """For a comparison that may come to nothing: what it finds is its own."""
        return Context(self._pairs, self._path)

    @contextmanager
    def at(self, *steps: str) -> Iterator[None]:
        before = self._path
        self._path = (*before, *steps)
        yield
        self._path = before

    def add(self, kind: str, *steps: str) -> None:
        self.take([Difference(kind, "#/" + "/".join((*self._path, *steps)))])

    def take(self, found: list[Difference]) -> None:
        """A bound: a schema used twice in one used twice … doubles what is found with each level."""
        self.found += found[: limits.SCHEMA_DIFFERENCES_MAX - len(self.found)]

    def compare(self, original: Node, update: Node, comparison: Callable[[Context], None]) -> None:
        found = self._pairs.compare(original, update, comparison)
        prefix = "#/" + "/".join(self._path)
        self.take(
            list(found)
            if not self._path
            else [
                Difference(each.kind, prefix if len(each.path) <= 2 else f"{prefix}/{each.path[2:]}") for each in found
            ]
        )

    @property
    def is_compatible(self) -> bool:
        return are_compatible(self.found)


def are_compatible(found: list[Difference] | Found) -> bool:
    return all(each.kind in COMPATIBLE for each in found)
