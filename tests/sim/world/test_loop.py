"""The simulated loop: virtual time, order, hosts that die and pause, limits, and the same trace for the same seed."""

import asyncio
import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, cast

import pytest

from ottla.sim.world.loop import HOST, SimHost, SimLoop, SimulationError

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    loop = SimLoop(random.Random(1))
    yield loop
    loop.bury()


def test_time_is_virtual_and_timers_fire_in_order(loop: SimLoop) -> None:
    fired = []

    async def main() -> None:
        for delay in (30, 10, 20):
            loop.call_later(delay, lambda delay=delay: fired.append((delay, loop.time())))
        await asyncio.sleep(3000)

    loop.run_until_complete(main())
    assert fired == [(10, 10.0), (20, 20.0), (30, 30.0)] and loop.time() == 3000.0


def test_who_is_buried_is_in_this_loop_to_its_end() -> None:
    """Elsewhere it would get a real loop, which nobody closes."""
    loop = SimLoop(random.Random(1))
    seen: list[asyncio.AbstractEventLoop] = []

    async def reluctant() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            for _ in range(2):
                with contextlib.suppress(GeneratorExit):
                    seen.append(asyncio.get_running_loop())
                    await asyncio.gather(loop.create_future(), return_exceptions=True)

    task = loop.create_task(reluctant())
    loop.run_until_complete(asyncio.sleep(1))
    loop.bury()
    assert seen == [loop, loop]
    assert cast("Coroutine[Any, Any, None]", task.get_coro()).cr_frame is None, "nothing is left to the collector"


def test_a_deadlock_is_found(loop: SimLoop) -> None:
    with pytest.raises(SimulationError, match="deadlock"):
        loop.run_until_complete(asyncio.wait_for(loop.create_future(), None))


def test_a_livelock_is_found() -> None:
    loop = SimLoop(random.Random(1), stall_limit=1000)

    def again() -> None:
        loop.call_soon(again)

    loop.call_soon(again)
    with pytest.raises(SimulationError, match="livelock"):
        loop.run_until_complete(asyncio.sleep(1))
    loop.bury()


def test_limits_hold() -> None:
    loop = SimLoop(random.Random(1), time_limit_seconds=10)
    with pytest.raises(SimulationError, match="virtual seconds"):
        loop.run_until_complete(asyncio.sleep(11))
    loop.bury()


def test_executor_work_runs_later_and_its_result_later_still(loop: SimLoop) -> None:
    async def main() -> tuple[float, float]:
        ran_at = await loop.run_in_executor(None, loop.time)
        return ran_at, loop.time()

    ran_at, seen_at = loop.run_until_complete(main())
    assert 0 < ran_at < seen_at

    async def failing() -> None:
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 / 0)

    loop.run_until_complete(failing())


def test_a_dead_host_never_runs_again_not_even_its_finally(loop: SimLoop) -> None:
    host, seen = SimHost("h", "10.0.0.1"), []

    async def node() -> None:
        try:
            for number in range(10):
                seen.append(number)
                await asyncio.sleep(1)
                asyncio.get_running_loop().call_later(0.1, seen.append, -number)
        finally:
            seen.append("finally")

    async def main() -> None:
        loop.task_of(host, node())
        await asyncio.sleep(3.05)
        loop.kill(host)
        await asyncio.sleep(100)

    loop.run_until_complete(main())
    assert seen == [0, 1, 0, 2, -1, 3]
    assert not loop.errors


def test_everything_a_host_schedules_is_its_own(loop: SimLoop) -> None:
    host, owners = SimHost("h", "10.0.0.1"), []

    async def child() -> None:
        await asyncio.sleep(1)
        owners.append(HOST.get())
        loop.call_soon(lambda: owners.append(HOST.get()))

    async def main() -> None:
        await loop.task_of(host, asyncio.wait_for(child(), 5))
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert owners == [host, host] and HOST.get() is None


def test_a_paused_host_goes_on_where_it_was(loop: SimLoop) -> None:
    host, ticks = SimHost("h", "10.0.0.1"), []

    async def node() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            ticks.append(loop.time())

    async def main() -> None:
        task = loop.task_of(host, node())
        await asyncio.sleep(1.5)
        loop.pause(host)
        await asyncio.sleep(8.5)
        loop.resume(host)
        await task

    loop.run_until_complete(main())
    assert ticks == [1.0, 10.0, 11.0]


def test_errors_that_nobody_catches_are_kept(loop: SimLoop) -> None:
    async def main() -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert [type(error["exception"]) for error in loop.errors] == [ZeroDivisionError]


SCRIPT = """
import asyncio, random, sys
from ottla.sim.world.loop import SimLoop
loop = SimLoop(random.Random(int(sys.argv[1])))
async def worker(n):
    for name in {"a", "b", "c"} & {"a", "b", "c"} and sorted({"a", "b", "c"}):
        await asyncio.sleep(loop.rng.random())
        await loop.run_in_executor(None, len, name * n)
async def main():
    await asyncio.gather(*(worker(n) for n in range(20)))
loop.run_until_complete(main())
print(loop.trace)
loop.bury()
"""


def trace(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", SCRIPT, str(seed)]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_trace_depends_on_the_seed_and_on_nothing_else() -> None:
    assert trace(1, "1") == trace(1, "2") != trace(2, "1")
