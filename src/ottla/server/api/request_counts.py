"""RequestCounts: the requests of one node by API and version, their times, and the errors in their answers.

A route holds its `RouteCounts`, so that a request needs no look-up. For most requests two things are done: one bucket
of a histogram is counted up, with the time that its connection takes anyway, and a function made for the API looks at
the error codes of the answer. Routes of a node without metrics have none.

What hardly ever takes long (`Phase`) is counted only when it does, so that it costs other requests nothing; a scrape
counts all others as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from typing import TypeAlias

from ottla.observe.metrics.histogram import Histogram, RecentHistogram
from ottla.observe.metrics.request_names import FETCH, FETCH_CONSUMER, FETCH_FOLLOWER
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.wire.message import Response, Struct, fields

ERROR_CODE = "error_code"
# A shorter phase counts as 0; Kafka rounds these to whole milliseconds.
NOTICED_S = 0.001
_Look: TypeAlias = Callable[[Response, Callable[[int], None]], bool]


class Phase(IntEnum):
    """What a request may spend time in besides its handling."""

    QUEUED = 0  # it had arrived, and was not handled yet
    HELD = 1  # its answer was ready, and an answer before it was not
    SENT = 2  # its answer was being sent, and the client or the disk was slow


class RouteCounts:
    """The requests of one version of an API. Times are in microseconds.

    - `at_once`: those that were answered when their handler returned, and how long that took;
    - `begun`: those whose answer had to wait, and how long until their handler returned;
    - `waited`: the same requests, and how long until they were answered;
    - `remote`: the same requests, and how much of that was after their handler had returned;
    - `errors`: error codes in answers, `failing`: the answers with any; `elsewhere`: those that another node made.
    """

    __slots__ = (
        "_look",
        "at_once",
        "begun",
        "elsewhere",
        "errors",
        "failing",
        "followers",
        "name",
        "phases",
        "remote",
        "version",
        "waited",
    )

    def __init__(self, name: str, version: int, look: _Look) -> None:
        self.name = name
        self.version = version
        self.at_once = RecentHistogram()
        self.begun = RecentHistogram()
        self.waited = RecentHistogram()
        self.remote = RecentHistogram()
        self.phases: list[RecentHistogram | None] = [None] * len(Phase)  # of those that took long once
        self.errors: dict[int, int] = {}
        self.failing = self.elsewhere = 0
        self.followers: RouteCounts | None = None  # of Fetch: the counts of followers' requests
        self._look = look

    def took(self, answer: object) -> Histogram:
        """Note the answer that a handler returned, if it has one already; return where its time counts."""
        if isinstance(answer, Response):
            if self._look(answer, self._failed):
                self.failing += 1
        elif answer is not None:
            return self.begun.all
        return self.at_once.all

    def answered(self, answer: object, took_s: float, local_s: float) -> None:
        """Note the answer to a request that had to wait, and how long its handler took. What another node answered is
        counted there.
        """
        self.waited.all.add(int(took_s * 1e6))
        self.remote.all.add(int((took_s - local_s) * 1e6))
        if isinstance(answer, Response):
            if self._look(answer, self._failed):
                self.failing += 1
        elif isinstance(answer, Forwarded):
            self.elsewhere += 1

    def took_long(self, phase: Phase, took_s: float) -> None:
        """Note how long a phase of a request took, if that is worth it."""
        if took_s >= NOTICED_S:
            found = self.phases[phase]
            if found is None:
                found = self.phases[phase] = RecentHistogram()
            found.all.add(int(took_s * 1e6))

    def _failed(self, code: int) -> None:
        self.errors[code] = self.errors.get(code, 0) + 1

    def histograms(self) -> tuple[RecentHistogram, ...]:
        return self.at_once, self.begun, self.waited, self.remote, *filter(None, self.phases)


class RequestCounts:
    def __init__(self) -> None:
        self.routes: dict[tuple[str, int], RouteCounts] = {}

    def of(self, name: str, version: int, response: type[Response]) -> RouteCounts:
        """Return the counts of one version of an API; listeners share them. Those of Fetch are of consumers."""
        if name != FETCH:
            return self._of(name, version, response)
        found = self._of(FETCH_CONSUMER, version, response)
        found.followers = self._of(FETCH_FOLLOWER, version, response)
        return found

    def _of(self, name: str, version: int, response: type[Response]) -> RouteCounts:
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
    """Return a function that calls its second argument with every error code, other than NONE, in a response, and
    returns whether there was any.

    It is made of loops over the fields that lead to error codes, written out, as the codecs are.
    """
    lines = ["    found = False", *_lines(response, "item", 1), "    return found"]
    source = "\n".join(["def look(item, failed):", *lines])
    made: dict[str, _Look] = {}
    exec(compile(source, f"<error codes of {response.__name__}>", "exec"), made)  # noqa: S102  # our own declarations
    return made["look"]


def _lines(struct: type[Struct], item: str, depth: int) -> Iterator[str]:
    indent = "    " * depth
    for field in fields(struct):
        value = f"{item}.{field.name}"
        if field.name == ERROR_CODE:
            yield f"{indent}if {value}: failed({value}); found = True"
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
