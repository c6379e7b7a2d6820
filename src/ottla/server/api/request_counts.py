"""RequestCounts: the requests of one node by API and version, their times, and the errors in their answers.

A route holds its `RouteCounts`, so that a request needs no look-up. For most requests two things are done: one bucket
of a histogram is counted up, with the time that its connection takes anyway, and a function made for the API looks at
the error codes of the answer. Routes of a node without metrics have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

from ottla.observe.metrics.histogram import Histogram, RecentHistogram
from ottla.wire.message import Response, Struct, fields

ERROR_CODE = "error_code"
_Look: TypeAlias = Callable[[Response, Callable[[int], None]], None]


class RouteCounts:
    """The requests of one version of an API. Times are in microseconds.

    - `at_once`: those that were answered when their handler returned, and how long that took;
    - `begun`: those whose answer had to wait, and how long until their handler returned;
    - `waited`: the same requests, and how long until they were answered.
    """

    __slots__ = ("_look", "at_once", "begun", "errors", "name", "version", "waited")

    def __init__(self, name: str, version: int, look: _Look) -> None:
        self.name = name
        self.version = version
        self.at_once = RecentHistogram()
        self.begun = RecentHistogram()
        self.waited = RecentHistogram()
        self.errors: dict[int, int] = {}
        self._look = look

    def took(self, answer: object) -> Histogram:
        """Note the answer that a handler returned, if it has one already; return where its time counts."""
        if isinstance(answer, Response):
            self._look(answer, self._failed)
        elif answer is not None:
            return self.begun.all
        return self.at_once.all

    def answered(self, answer: object, took_s: float) -> None:
        """Note the answer to a request that had to wait. What another node answered is counted there."""
        self.waited.all.add(int(took_s * 1e6))
        if isinstance(answer, Response):
            self._look(answer, self._failed)

    def _failed(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    def histograms(self) -> tuple[RecentHistogram, RecentHistogram, RecentHistogram]:
        return self.at_once, self.begun, self.waited


class RequestCounts:
    def __init__(self) -> None:
        self.routes: dict[tuple[str, int], RouteCounts] = {}

    def of(self, name: str, version: int, response: type[Response]) -> RouteCounts:
        """Return the counts of one version of an API; listeners share them."""
        found = self.routes.get((name, version))
        if found is None:
            found = self.routes[name, version] = RouteCounts(name, version, look_for_errors(response))
        return found

    def turn(self) -> None:
        """Begin another interval of the quantiles."""
        for route in self.routes.values():
            for histogram in route.histograms():
                histogram.turn()


@cache
def look_for_errors(response: type[Response]) -> _Look:
    """Return a function that calls its second argument with every error code, other than NONE, in a response.

    It is made of loops over the fields that lead to error codes, written out, as the codecs are.
    """
    lines = list(_lines(response, "item", 1))
    source = "\n".join(["def look(item, failed):", *(lines or ["    pass"])])
    made: dict[str, _Look] = {}
    exec(compile(source, f"<error codes of {response.__name__}>", "exec"), made)  # noqa: S102  # our own declarations
    return made["look"]


def _lines(struct: type[Struct], item: str, depth: int) -> Iterator[str]:
    indent = "    " * depth
    for field in fields(struct):
        value = f"{item}.{field.name}"
        if field.name == ERROR_CODE:
            yield f"{indent}if {value}: failed({value})"
        elif isinstance(field.type, type):
            inner = f"item{depth}"
            inside = list(_lines(field.type, inner, depth + 1))
            if not inside:
                continue
            if field.is_list:
                yield f"{indent}for {inner} in {value} or ():"
            else:
                yield f"{indent}if ({inner} := {value}) is not None:"
            yield from inside
