"""RequestCounts: the requests of one node by API and version, their times, and the errors in their answers.

A route holds its `RouteCounts`, so that a request needs no look-up. For most requests two things are done: one time is
counted, which its connection takes anyway, and a function made for the API looks for error codes in the answer. A
connection has this done for all requests of a turn together (`count_requests`), which is cheaper than beside the
handling of each. Routes of a node without metrics have no counts.

What hardly ever takes long (`Phase`) is counted only when it does, so that it costs other requests nothing; a scrape
counts all others as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from ottla.observe.metrics.histogram import QuickTimes, RecentHistogram
from ottla.observe.metrics.request_names import FETCH, FETCH_CONSUMER, FETCH_FOLLOWER
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.wire.message import Response, Struct, fields

ERROR_CODE = "error_code"
# A shorter phase counts as 0; Kafka rounds these to whole milliseconds.
NOTICED_S = 0.001
_Fails: TypeAlias = Callable[[Response], bool]
_Codes: TypeAlias = Callable[[Response, Callable[[int], None]], None]


class Phase(IntEnum):
    """What a request may spend time in besides its handling."""

    QUEUED = 0  # it had arrived, and was not handled yet
    HELD = 1  # its answer was ready, and an answer before it was not
    SENT = 2  # its answer was being sent, and the client or the disk was slow


class ErrorFinders(NamedTuple):
    """Two functions of a response: whether it has an error code other than NONE, and what calls another with each."""

    fails: _Fails
    codes: _Codes


class RouteCounts:
    """The requests of one version of an API. Times are in microseconds.

    - `at_once`: those that were answered when their handler returned, and how long that took;
    - `begun`: those whose answer had to wait, and how long until their handler returned;
    - `waited`: the same requests, and how long until they were answered;
    - `remote`: the same requests, and how much of that was after their handler had returned;
    - `errors`: error codes in answers, `failing`: the answers with any; `elsewhere`: those that another node made.
    """

    __slots__ = (
        "_codes",
        "at_once_times",
        "begun_times",
        "elsewhere",
        "errors",
        "failing",
        "fails",
        "followers",
        "name",
        "phases",
        "remote",
        "version",
        "waited",
    )

    def __init__(self, name: str, version: int, response: type[Response]) -> None:
        self.name = name
        self.version = version
        self.at_once_times = QuickTimes()
        self.begun_times = QuickTimes()
        self.waited = RecentHistogram()
        self.remote = RecentHistogram()
        self.phases: list[RecentHistogram | None] = [None] * len(Phase)  # of those that took long once
        self.errors: dict[int, int] = {}
        self.failing = self.elsewhere = 0
        self.followers: RouteCounts | None = None  # of Fetch: the counts of followers' requests
        self.fails, self._codes = finders_of_errors(response)  # `fails`: whether an answer has any error

    @property
    def at_once(self) -> RecentHistogram:
        return self.at_once_times.histogram

    @property
    def begun(self) -> RecentHistogram:
        return self.begun_times.histogram

    def failed(self, answer: Response) -> None:
        """Note an answer that has errors."""
        self.failing += 1
        self._codes(answer, self._failed)

    def answered(self, answer: object, took_s: float, local_s: float) -> None:
        """Note the answer to a request that had to wait, and how long its handler took. What another node answered is
        counted there.
        """
        self.waited.all.add(int(took_s * 1e6))
        self.remote.all.add(int((took_s - local_s) * 1e6))
        if isinstance(answer, Response):
            if self.fails(answer):
                self.failed(answer)
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


# The counts, what the handler returned, and when it was called.
HandledRequest: TypeAlias = tuple[RouteCounts, object, float]


def count_requests(handled: list[HandledRequest], ended_s: float) -> None:
    """Count requests that were handled one after the other, the last one until `ended_s`, and empty the list."""
    for counts, answer, begun_s in reversed(handled):
        took_us = int((ended_s - begun_s) * 1e6)
        ended_s = begun_s
        times = counts.at_once_times
        if isinstance(answer, Response):
            if counts.fails(answer):
                counts.failed(answer)
        elif answer is not None:
            times = counts.begun_times
        try:
            times.below[took_us] += 1
        except IndexError:
            times.add(took_us)
    handled.clear()


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
            found = self.routes[name, version] = RouteCounts(name, version, response)
        return found

    def turn(self) -> None:
        """Begin another interval of the quantiles."""
        for route in self.routes.values():
            for histogram in route.histograms():
                histogram.turn()


@cache
def finders_of_errors(response: type[Response]) -> ErrorFinders:
    """Return the functions for one kind of response. They are made of loops over the fields that lead to error codes,
    written out, as the codecs are.
    """
    name = f"<error codes of {response.__name__}>"
    fails = ["def fails(item):", *_lines(response, "item", 1, "return True"), "    return False"]
    codes = ["def codes(item, failed):", *_lines(response, "item", 1, "failed({})"), "    return None"]
    made: dict[str, Any] = {}
    exec(compile("\n".join([*fails, *codes]), name, "exec"), made)  # noqa: S102  # our own declarations
    return ErrorFinders(made["fails"], made["codes"])


def _lines(struct: type[Struct], item: str, depth: int, then: str) -> Iterator[str]:
    """Yield the lines that do something for each error code; `{}` stands for it."""
    indent = "    " * depth
    for field in fields(struct):
        value = f"{item}.{field.name}"
        if field.name == ERROR_CODE:
            yield f"{indent}if {value}: {then.format(value)}"
        elif isinstance(field.type, type):
            inner = f"item{depth}"
            inside = list(_lines(field.type, inner, depth + 1, then))
            if not inside:
                continue
            if field.is_list:
                yield f"{indent}for {inner} in {value} or ():"
            else:
                yield f"{indent}if ({inner} := {value}) is not None:"
            yield from inside
