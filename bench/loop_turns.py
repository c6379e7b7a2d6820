"""Measure the turns of a node's event loop while a client floods it: `python -m bench.loop_turns`.

A short request waits for the turn that is running. So the figure is the CPU time of the turn that a moment falls into,
p99 over all moments: long turns count by their length. The loop never sleeps meanwhile, or there would be no turn to
measure. It is the thread's own CPU time, so load of the machine counts only for caches.

The client floods once at the lowest priority, as in `bench/floods.py`, and once at that of the node.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench import probe
from bench.floods import FLOODS, LOWEST, PARTITIONS, TOPIC, flooding
from ottla.server.loop.garbage_collector import keep_short
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.server.process import loop_factory
from ottla.testing.loop_thread import LoopThread

ROUNDS, MEASURED_S = 3, 3.0
NICE = {"lowest priority": LOWEST, "same priority": 0}


class Turns:
    """A node in this process, whose turns can be measured."""

    def __init__(self, directory: Path) -> None:
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory)}
        self._node = Node(settings, system_ports(settings))
        self._thread = LoopThread("turns", self._serve, loop_factory() or asyncio.new_event_loop)
        self._marks_s: list[float] | None = None

    @property
    def bootstrap(self) -> str:
        host, port = self._node.addresses[0]
        return f"{host}:{port}"

    def __enter__(self) -> Turns:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.end(self._node.request_stop)

    async def _serve(self, ready: Callable[[], None]) -> None:
        await self._node.start()
        ready()
        await self._node.stopped()

    def p99_ms(self, for_s: float) -> float:
        assert self._thread.loop is not None
        self._marks_s = marks_s = []
        self._thread.loop.call_soon_threadsafe(self._mark)
        time.sleep(for_s)
        self._marks_s = None
        return longest_but([(after - before) * 1000 for before, after in pairwise(marks_s)], 0.01)

    def _mark(self) -> None:
        if self._marks_s is not None and self._thread.loop is not None:
            self._marks_s.append(time.thread_time())
            self._thread.loop.call_soon(self._mark)


def longest_but(lengths: Sequence[float], share: float) -> float:
    """The length that all pieces have but the longest, which together are this share of the whole."""
    left = sum(lengths) * share
    for each in sorted(lengths, reverse=True):
        left -= each
        if left < 0:
            return each
    return 0.0


def main() -> None:
    keep_short()  # as the process of a node does
    table = Table("flood", *NICE, title="CPU ms of the turn that a request waits for, p99, median (least to most)")
    with tempfile.TemporaryDirectory() as directory, Turns(Path(directory)) as node:
        probe.create_topics(node.bootstrap, [TOPIC], PARTITIONS)
        table.add_row("nobody", _told([node.p99_ms(MEASURED_S) for _ in range(ROUNDS)]), "")
        for name in FLOODS:
            table.add_row(name, *(_flooded(node, name, nice) for nice in NICE.values()))
    Console().print(table, f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}")


def _flooded(node: Turns, name: str, nice: int) -> str:
    with flooding(node.bootstrap, name, nice):
        return _told([node.p99_ms(MEASURED_S) for _ in range(ROUNDS)])


def _told(found_ms: list[float]) -> str:
    return f"{median(found_ms):.2f} ({min(found_ms):.2f} to {max(found_ms):.2f})"


if __name__ == "__main__":
    main()
