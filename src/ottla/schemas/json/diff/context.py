"""The path of a comparison, the differences found so far, and the pairs of schemas that were compared.

A pair is compared once; its differences are kept relative to the pair, and appended to the path wherever the pair
occurs again. A pair that occurs while it is being compared (a schema that contains itself) is assumed to be compatible.
That may prove wrong, and other results may depend on it: so the comparison is repeated, with the pairs then known to be
incompatible, until no new ones are found.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.model import limits
from ottla.model.re2.match import Allowance, TooDear
from ottla.model.re2.nodes import RegexError
from ottla.schemas.json.diff.kinds import COMPATIBLE
from ottla.schemas.json.nodes import JsonNode


class JsonDifference(NamedTuple):
    kind: str
    path: str


Found = tuple[JsonDifference, ...]
Pair = tuple[int, int]
# A comparison, which asks for the pairs inside it with `yield` (schemas.steps); some return a verdict.
Steps = Generator[tuple[JsonNode, JsonNode], Found, None]
Verdict = Generator[tuple[JsonNode, JsonNode], Found, bool]
Looking = Generator[tuple[JsonNode, JsonNode], Found, Found]

# So many differences are copied to another path at the cost of comparing one pair.
_COPIED_AT_ONCE = 8


class TooComplex(Exception):
    """The schemas are too large to be compared."""


class Budget:
    """The limit of work for one comparison, over all passes."""

    def __init__(self) -> None:
        self._left = limits.SCHEMA_PAIRS_MAX
        self._patterns = Allowance(limits.SCHEMA_PATTERN_WORK_MAX)

    def spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooComplex

    def matches(self, pattern: str, name: str) -> bool:
        try:
            return self._patterns.matches(f"(?s:.*)(?:{pattern})(?s:.*)", name)
        except TooDear:
            raise TooComplex from None
        except RegexError:
            return False


class Pairs:
    """The results of one pass over two schemas, by pair of parts."""

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
        inner = DiffContext((), self._budget)
        yield from comparison(inner, original, update)
        self._under_way.discard(key)
        found = self._found[key] = tuple(inner.found)
        return found

    def incompatible(self) -> dict[Pair, Found]:
        return {key: found for key, found in self._found.items() if not are_compatible(found)}


class DiffContext:
    """A path in the comparison of a pair, and the differences found there."""

    def __init__(self, path: tuple[str, ...], budget: Budget) -> None:
        self._path = path
        self._budget = budget
        self.found: list[JsonDifference] = []

    def aside(self) -> DiffContext:
        """Return a context for a tentative comparison: its differences are not added to this one."""
        return DiffContext(self._path, self._budget)

    def matches(self, pattern: str, name: str) -> bool:
        """Return whether a name matches; a pattern that the bounded engine does not support (lookaround, say) matches
        nothing, to be safe.
        """
        return self._budget.matches(pattern, name)

    @contextmanager
    def at(self, *steps: str) -> Iterator[None]:
        before = self._path
        self._path = (*before, *steps)
        yield
        self._path = before

    def add(self, kind: str, *steps: str) -> None:
        self.take([JsonDifference(kind, "#/" + "/".join((*self._path, *steps)))])

    def take(self, found: list[JsonDifference]) -> None:
        """Add differences up to a bound: nested schemas that are each used twice double their number at each level.
        Even beyond the bound the first incompatible one is kept.
        """
        room = max(limits.SCHEMA_DIFFERENCES_MAX - len(self.found), 0)
        if len(found) > room and self.is_compatible and are_compatible(found[:room]):
            self.found += [each for each in found[room:] if each.kind not in COMPATIBLE][:1]
        self.found += found[:room]

    def compare(self, original: JsonNode, update: JsonNode) -> Steps:
        """Ask for the differences between the two, and add them under the current path."""
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
