"""A node, started as `ottla` starts it, whose guard of Produce can be taken away and put back while it serves.

The words behind the module's name are those of `ottla`. Each line that is read, `with` or `without`, is followed by all
further requests, and is written back when it is. So one process is measured both ways: two processes differ by several
per cent for reasons of their own, such as where their memory lies.
"""

from __future__ import annotations

import runpy
import sys
import threading

from ottla.server.api.dispatch import Route, Routes
from ottla.wire.messages.records.produce import ProduceRequest


def main() -> None:
    made: list[Route] = []
    find = Routes.find

    def noted(self: Routes, key: int, version: int) -> Route | None:
        route = find(self, key, version)
        if key == ProduceRequest.key and route is not None and route not in made:
            made.append(route)
        return route

    Routes.find = noted  # type: ignore[method-assign]
    threading.Thread(target=_switch, args=(made,), daemon=True).start()
    runpy.run_module("ottla", run_name="__main__", alter_sys=True)


def _switch(routes: list[Route]) -> None:
    for line in sys.stdin:
        for route in routes:
            guarded = route.endpoint.handler
            behind = guarded.__wrapped__  # type: ignore[attr-defined]  # by `functools.wraps`
            route.handler = guarded if line.strip() == "with" else behind
        print(line.strip(), len(routes), flush=True)


if __name__ == "__main__":
    main()
