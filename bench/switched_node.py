"""A node, started as `ottla` starts it, of which a part can be taken away and put back while it serves.

The first word behind the module's name says which part: the `guard` of Produce, or the `counts` of requests; the others
are those of `ottla`. Each line that is read, `with` or `without`, is followed by all further requests, and is written
back when it is. So one process is measured both ways: two processes differ by several per cent for reasons of their
own, such as where their memory lies.
"""

from __future__ import annotations

import runpy
import sys
import threading
from collections.abc import Callable

from ottla.server.api.dispatch import Route, Routes
from ottla.server.api.request_counts import RouteCounts
from ottla.wire.messages.records.produce import ProduceRequest


def main() -> None:
    switch = SWITCHES[sys.argv.pop(1)]
    made: list[Route] = []
    find = Routes.find

    def noted(self: Routes, key: int, version: int) -> Route | None:
        route = find(self, key, version)
        if route is not None and route not in made:
            made.append(route)
        return route

    Routes.find = noted  # type: ignore[method-assign]
    threading.Thread(target=_follow, args=(switch, made), daemon=True).start()
    runpy.run_module("ottla", run_name="__main__", alter_sys=True)


def _follow(switch: Callable[[Route, bool], None], routes: list[Route]) -> None:
    for line in sys.stdin:
        for route in routes:
            switch(route, line.strip() == "with")
        print(line.strip(), sum(route.endpoint.key == ProduceRequest.key for route in routes), flush=True)


def _guard(route: Route, is_on: bool) -> None:
    if route.endpoint.key == ProduceRequest.key:
        guarded = route.endpoint.handler
        route.handler = guarded if is_on else guarded.__wrapped__  # type: ignore[attr-defined]  # by `functools.wraps`


def _counts(route: Route, is_on: bool) -> None:
    counts = _COUNTS.setdefault(route, route.counts)
    assert counts is not None, "a node with a metrics listener counts requests"
    route.counts = counts if is_on else None


SWITCHES: dict[str, Callable[[Route, bool], None]] = {"guard": _guard, "counts": _counts}
_COUNTS: dict[Route, RouteCounts | None] = {}


if __name__ == "__main__":
    main()
