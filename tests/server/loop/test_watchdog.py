"""Who holds up the event loop is found, named and counted; who does not, is not."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import eventually
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla.model import limits
from ottla.server.api.context import Context
from ottla.server.api.dispatch import Served
from ottla.server.loop.stalls import Stall, Stalls
from ottla.server.loop.watchdog import watch
from ottla.server.net.request_in_frame import request_in_frame
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.server.process import loop_factory
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

LIMIT_MS = 100


def compute(for_ms: float) -> None:
    """Keeps the CPU busy for so long, by its own time."""
    until_s = time.thread_time() + for_ms / 1000
    while time.thread_time() < until_s:
        pass


def watched(
    work: Callable[[asyncio.AbstractEventLoop], Any],
    new_loop: Callable[[], Any],
    seen: Callable[[Stalls], bool] = lambda stalls: True,
) -> Stalls:
    """The stalls of a loop that is given some work, once those are `seen` that must be."""
    stalls = Stalls()

    async def run() -> None:
        stop = watch(asyncio.get_running_loop(), stalls, LIMIT_MS, request_in_frame)
        await asyncio.sleep(0.01)
        await work(asyncio.get_running_loop())
        async with asyncio.timeout(WAIT_S):
            while not seen(stalls):  # noqa: ASYNC110 - a thread counts them
                await asyncio.sleep(LIMIT_MS / 1000)
        stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
    return stalls


@pytest.mark.parametrize("new_loop", [asyncio.SelectorEventLoop, loop_factory()], ids=["asyncio", "uvloop"])
def test_a_callback_that_computes_is_named(new_loop: Any, caplog: pytest.LogCaptureFixture) -> None:
    def greedy() -> None:
        compute(600)

    async def work(loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(greedy)

    with caplog.at_level(logging.WARNING):
        stalls = watched(work, new_loop, lambda stalls: any("greedy" in name for name in stalls.by_name))
    assert stalls.worst is not None and stalls.worst.held_ms > LIMIT_MS
    assert stalls.worst.request is None
    assert "greedy" in caplog.text


@pytest.mark.parametrize("new_loop", [asyncio.SelectorEventLoop, loop_factory()], ids=["asyncio", "uvloop"])
def test_a_callback_that_blocks_is_named_too(new_loop: Any) -> None:
    async def work(loop: asyncio.AbstractEventLoop) -> None:
        time.sleep(1)  # noqa: ASYNC251 - that is the mistake

    stalls = watched(work, new_loop, lambda stalls: stalls.worst is not None and stalls.worst.held_ms > 4 * LIMIT_MS)
    assert stalls.worst is not None and stalls.worst.cpu_ms < LIMIT_MS


def test_an_idle_loop_is_not_even_woken() -> None:
    turns = 0

    class Counting(asyncio.SelectorEventLoop):
        def _run_once(self) -> None:
            nonlocal turns
            turns += 1
            super()._run_once()  # type: ignore[misc]

    async def work(_: asyncio.AbstractEventLoop) -> None:
        nonlocal turns
        await asyncio.sleep(0)
        turns = 0
        await asyncio.sleep(5 * LIMIT_MS / 1000)
        woken.append(turns)

    woken: list[int] = []
    watched(work, Counting)
    assert woken[0] <= 4  # the sleep, and a look that may have met it awake; the watchdog had ten


def test_the_request_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node on its own loop, and a handler that takes too long."""

    def slow(served: Served, request: Any, context: Context) -> Any:
        compute(300)
        return served.handler(request, context)

    values = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    node = Node(values, system_ports(values), intercept=slow)
    told: list[Stall] = []
    monkeypatch.setattr(node.stalls, "add", lambda stall, now_s: told.append(stall))
    loop = loop_factory() or asyncio.new_event_loop
    ready = threading.Event()
    running: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        await node.start()
        running.append(asyncio.get_running_loop())
        ready.set()
        await node.stopped()

    def run() -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    host, port = node.addresses[0]
    with RawConnection(f"{host}:{port}") as connection:
        hello = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        named = lambda: connection.call(hello, 3) and [stall for stall in told if stall.request is not None]  # noqa: E731
        found = eventually(named, "the stall")[0]
    running[0].call_soon_threadsafe(node.request_stop)
    thread.join()
    assert found.request.startswith("ApiVersions v3 of client 'raw' at 127.0.0.1:")
    assert found.held_ms > LIMIT_MS


def test_one_line_for_many_stalls(caplog: pytest.LogCaptureFixture) -> None:
    stalls = Stalls()
    with caplog.at_level(logging.WARNING):
        for number in range(100):
            stalls.add(Stall("a", "b", None, 100 + number, 90), 1.0)
        assert len(caplog.records) == 1
        stalls.add(Stall("a", "b", None, 100, 90), 1.0 + limits.STALL_LOG_INTERVAL_MS / 1000)
    assert len(caplog.records) == 2
    assert "99 stalls before it were not logged" in caplog.text
    assert stalls.count == 101 and stalls.by_name == {"a": 101}
    assert stalls.worst is not None and stalls.worst.held_ms == 199


def test_names_are_bounded() -> None:
    stalls = Stalls()
    for number in range(limits.STALL_NAMES_MAX + 10):
        stalls.add(Stall(str(number), "b", None, 100, 90), 1.0)
    assert len(stalls.by_name) == limits.STALL_NAMES_MAX
