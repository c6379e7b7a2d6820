"""Long work in slices: everything is done, in order, and nobody waits for all of it."""

import asyncio
from collections.abc import Generator

from ottla.server.loop.later import Large, Sliced
from ottla.server.loop.slices import Slices


def test_one_slice_per_turn_whoever_works() -> None:
    async def run() -> list[int]:
        loop = asyncio.get_running_loop()
        slices, turns, done = Slices(loop), 0, []

        def count() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(count)

        async def work() -> None:
            for _ in range(5):
                await slices.turn()
                done.append(turns)

        loop.call_soon(count)
        await asyncio.gather(*(work() for _ in range(4)))
        return done

    done = asyncio.run(run())
    assert len(done) == 20
    assert len(set(done)) == 20, "two slices in one turn"


def test_who_is_cancelled_holds_up_nobody() -> None:
    async def run() -> None:
        slices = Slices(asyncio.get_running_loop())
        tasks = [asyncio.create_task(slices.turn()) for _ in range(5)]
        await asyncio.sleep(0)
        for task in tasks[:4]:
            task.cancel()
        await asyncio.wait_for(tasks[4], 60)

    asyncio.run(run())


def test_short_work_is_answered_at_once() -> None:
    def steps(count: int) -> Generator[None, None, str]:
        for _ in range(count):
            yield
        return "done"

    async def run() -> None:
        slices = Slices(asyncio.get_running_loop())
        assert slices.answer(steps(0)) == "done"
        answer = slices.answer(steps(3))
        assert isinstance(answer, Sliced)
        large = await answer
        assert isinstance(large, Large) and large.response == "done"

    asyncio.run(run())
