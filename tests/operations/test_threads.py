"""Blocking work: what is slow keeps other work from no thread."""

from __future__ import annotations

import asyncio
import threading

from tests.support.waiting import until_async

from ottla.model import limits
from ottla.operations.threads import BlockingWork, in_thread


def test_a_slow_registry_leaves_threads_for_other_work() -> None:
    async def run() -> None:
        answered = threading.Event()
        begun: list[int] = []

        def slow(number: int) -> None:
            begun.append(number)
            answered.wait(60)

        async def count() -> int:
            return len(begun)

        slow_calls = [asyncio.ensure_future(in_thread(BlockingWork.registry, slow, n)) for n in range(100)]
        try:
            async with asyncio.timeout(10):
                for other in set(BlockingWork) - {BlockingWork.registry}:
                    assert await in_thread(other, str.upper, "a") == "A"
                assert await asyncio.to_thread(str.upper, "a") == "A"
            await until_async(count, lambda found: found >= limits.CONSOLE_REGISTRY_THREADS)
            assert len(begun) == limits.CONSOLE_REGISTRY_THREADS
        finally:
            answered.set()
        await asyncio.gather(*slow_calls)

    asyncio.run(run())
