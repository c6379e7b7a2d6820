"""The desk of pipelines: its blocking work, which must hold up no other."""

from __future__ import annotations

import asyncio
import threading

from ottla.console.access import Access
from ottla.console.options import ConsoleOptions
from ottla.console.pages.pipelines.desk import PipelineDesk
from ottla.operations.threads import BlockingWork, in_thread


def test_a_board_is_read_once_at_a_time_and_without_a_thread_that_waits() -> None:
    """Also when the page that has asked is gone before its answer."""

    async def run() -> None:
        access = Access(ConsoleOptions("127.0.0.1:1"))
        desk = PipelineDesk(access)
        answered = threading.Event()
        begun: list[int] = []

        def slow(number: int) -> None:
            begun.append(number)
            answered.wait(60)

        calls = [asyncio.ensure_future(desk._in_thread(lambda _, n=number: slow(n))) for number in range(50)]
        try:
            await asyncio.sleep(0.1)
            calls[0].cancel()
            async with asyncio.timeout(10):
                assert await in_thread(BlockingWork.board, str.upper, "a") == "A"
            assert begun == [0]
        finally:
            answered.set()
        await asyncio.gather(*calls, return_exceptions=True)
        assert begun == list(range(50))
        desk.close()
        await access.close()

    asyncio.run(run())
