"""Work beside the registry's loop: a change of the state waits for what runs, and for nothing that only waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from ottla.model import limits
from ottla.registry.schema_threads import SchemaThreads

THREADS = limits.SCHEMA_THREADS_MAX


class Works:
    """Pieces of work that end when they are told to."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ends: dict[int, threading.Event] = {}

    def piece(self, number: int) -> Callable[[], int]:
        end = self.ends[number] = threading.Event()

        def work() -> int:
            self.begun.append(number)
            assert end.wait(60)
            return number

        return work


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - the work is a thread's
            await asyncio.sleep(0.001)


def test_a_change_waits_for_what_runs_and_not_for_the_queue() -> None:
    works = Works()
    order: list[str] = []

    async def run() -> None:
        threads = SchemaThreads()

        async def change() -> None:
            async with threads.change():
                order.append(f"changed after {len(works.begun)} had begun")

        asked = [asyncio.create_task(threads.run(works.piece(number))) for number in range(3 * THREADS)]
        try:
            await until(lambda: len(works.begun) == THREADS)
            changing = asyncio.create_task(change())
            await asyncio.sleep(0)
            for number in range(THREADS):
                assert not changing.done()
                works.ends[number].set()
            await asyncio.wait_for(changing, 60)
            assert order == [f"changed after {THREADS} had begun"]
        finally:
            for end in works.ends.values():
                end.set()
        assert await asyncio.gather(*asked) == list(range(3 * THREADS))
        threads.close()

    asyncio.run(run())


def test_nothing_begins_during_a_change() -> None:
    works = Works()

    async def run() -> None:
        threads = SchemaThreads()
        async with threads.change():
            asked = asyncio.create_task(threads.run(works.piece(1)))
            await asyncio.sleep(0.01)
            assert works.begun == []
        works.ends[1].set()
        assert await asked == 1
        threads.close()

    asyncio.run(run())


def test_whoever_gives_up_takes_no_thread_away() -> None:
    works = Works()

    async def run() -> None:
        threads = SchemaThreads()
        running = [asyncio.create_task(threads.run(works.piece(number))) for number in range(THREADS)]
        await until(lambda: len(works.begun) == THREADS)
        waiting = [asyncio.create_task(threads.run(works.piece(number))) for number in range(THREADS, 3 * THREADS)]
        await asyncio.sleep(0)
        for task in [*running, *waiting]:
            task.cancel()
        await asyncio.gather(*running, *waiting, return_exceptions=True)
        for end in works.ends.values():
            end.set()
        async with asyncio.timeout(60):
            assert await asyncio.gather(*(threads.run(lambda: 7) for _ in range(THREADS + 1))) == [7] * (THREADS + 1)
            async with threads.change():
                assert threads._inside == 0
        threads.close()

    asyncio.run(run())
