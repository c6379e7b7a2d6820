"""How much CPU each callback of an event loop takes: the thread's own time, so that a busy machine is no finding.

Neighbours also take caches and memory from a thread that runs, which makes the same work dearer. So what exceeds the
budget is set against a known piece of work that is done at the same moment (`slowness`).

`recorded()` watches all plain asyncio loops of the process (uvloop has no place to put a clock). `MeasuredNode` is a
real node on such a loop, in a thread of its own; `MeasuredNode.cost(work)` says what the node's callbacks took while
`work` (a client in the caller's thread) ran, and `best_of` takes the best of some repetitions.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from asyncio.events import Handle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.support.requests.raw import RawConnection

from ottla.server.node import Node
from ottla.server.ports.ports import system_ports

BUDGET_MS = 50.0  # what one callback may take of the CPU


class Callback(NamedTuple):
    """One callback that has run."""

    cpu_ms: float
    name: str
    loop: asyncio.AbstractEventLoop | None


class Recording:
    """The callbacks of some time, in order; those that took next to nothing are only counted."""

    def __init__(self) -> None:
        self.callbacks: list[Callback] = []
        self.count = 0

    def worst(self, loop: asyncio.AbstractEventLoop | None = None) -> Callback:
        """The dearest one (of one loop); one above the budget as it would be on a quiet machine."""
        assert self.count, "no callback was run"
        mine = [each for each in self.callbacks if loop is None or each.loop is loop]
        worst = max(mine, key=lambda each: each.cpu_ms, default=Callback(_KEPT_MS, "next to nothing", loop))
        return worst if worst.cpu_ms <= BUDGET_MS else worst._replace(cpu_ms=worst.cpu_ms / slowness())

    def clear(self) -> None:
        self.callbacks.clear()
        self.count = 0


_KEPT_MS = 0.05
_KNOWN_WORK_MS = 6.2  # what `_known_work` takes on a quiet core of the machines on which the budget was set
_MOST_SLOWNESS = 3.0


def slowness() -> float:
    """How many times the CPU time of a quiet machine the same work takes now, from 1 to `_MOST_SLOWNESS`."""
    with without_collections():
        taken_ms = median(_cpu_ms(_known_work) for _ in range(7))
    return min(max(taken_ms / _KNOWN_WORK_MS, 1.0), _MOST_SLOWNESS)


def _cpu_ms(work: Callable[[], object]) -> float:
    started_s = time.thread_time()
    work()
    return (time.thread_time() - started_s) * 1000


def _known_work() -> int:
    """Make and look up objects, as a handler does with a large request."""
    rows = [(f"name-{number}", [number, number + 1], {"id": number}) for number in range(12_000)]
    found = {name: (numbers, more) for name, numbers, more in rows}
    return sum(len(found[name][0]) for name, _, _ in rows)


@contextmanager
def recorded() -> Iterator[Recording]:
    """Writes down what every callback of every asyncio loop in this process takes."""
    recording = Recording()
    plain = Handle._run

    def run(handle: Handle) -> None:
        name = handle._callback
        started_s = time.thread_time()
        plain(handle)
        cpu_ms = (time.thread_time() - started_s) * 1000
        recording.count += 1
        if cpu_ms >= _KEPT_MS:
            recording.callbacks.append(Callback(cpu_ms, _name(name), handle._loop))

    Handle._run = run
    try:
        yield recording
    finally:
        Handle._run = plain


def _name(callback: Any) -> str:
    """Of a task: of its coroutine."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine = owner.get_coro()
        return f"task {getattr(coroutine, '__qualname__', coroutine)}"
    return str(getattr(callback, "__qualname__", callback))


@contextmanager
def without_collections() -> Iterator[None]:
    """Python's collector stops whoever happens to run. How long is of all objects of the process, most of them the
    tests'; that a node's own collections are short is shown by tests/server/loop/test_garbage_collector.py."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def best_of(measure: Callable[[], Callback], times: int = 3, enough_ms: float = BUDGET_MS) -> Callback:
    """The cheapest of some measurements; the first one that is within the budget is good enough."""
    best = measure()
    for _ in range(times - 1):
        if best.cpu_ms <= enough_ms:
            break
        best = min(best, measure(), key=lambda each: each.cpu_ms)
    return best


class MeasuredNode:
    """A node on a plain asyncio loop in a thread of its own, with everything it runs recorded."""

    def __init__(self, data_dir: Path, settings: Mapping[str, object] | None = None) -> None:
        self.settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(data_dir),
            "group.initial.rebalance.delay.ms": "0",
            **{name: str(value) for name, value in (settings or {}).items()},
        }
        self.recording = Recording()
        self.loop = asyncio.SelectorEventLoop()
        self.node = Node(self.settings, system_ports(self.settings)._replace(watch=None))
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="measured-node", daemon=True)

    @property
    def bootstrap(self) -> str:
        host, port = self.node.addresses[0]
        return f"{host}:{port}"

    def connect(self) -> RawConnection:
        return RawConnection(self.bootstrap, timeout_s=120)

    def call(self, work: Callable[[], Any]) -> Any:
        """The result of `work`, done in the node's loop."""

        async def do() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(do(), self.loop).result(120)

    def cost(self, work: Callable[[], object]) -> Callback:
        """The dearest callback of the node while `work` runs; its result is awaited, the node's other work is not."""
        self.call(self.recording.clear)
        with without_collections():
            work()
            self.call(lambda: None)  # what the answer came from has ended
        return self.recording.worst(self.loop)

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        except BaseException as failure:
            self._failure = failure
        finally:
            self.loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        await self.node.start()
        self._ready.set()
        await self.node.stopped()

    def __enter__(self) -> MeasuredNode:
        self._recorder = recorded()
        self.recording = self._recorder.__enter__()
        self.begin()
        self.until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._recorder.__exit__(None, None, None)

    def begin(self) -> None:
        """Starts the node, and does not wait for it."""
        self._thread.start()

    def until_ready(self) -> None:
        self._ready.wait(60)
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.node.request_stop)
        self._thread.join()
