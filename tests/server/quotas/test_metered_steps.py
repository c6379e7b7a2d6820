"""The time of work on the loop, without the time for which it waits; and the wait in an answer of another node."""

from __future__ import annotations

import asyncio

import pytest

from ottla.server.api import dispatch
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.quotas.charges import PassedOn
from ottla.server.quotas.metered_steps import MeteredSteps
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_only_the_steps_count() -> None:
    clock, spent = Clock(), []

    async def work(gate: asyncio.Event) -> str:
        clock.now_s += 1
        await gate.wait()
        clock.now_s += 2
        await asyncio.sleep(0)
        clock.now_s += 4
        return "done"

    async def test() -> str:
        gate = asyncio.Event()
        task = asyncio.ensure_future(MeteredSteps(work(gate), clock, spent.append))
        await asyncio.sleep(0)
        clock.now_s += 100  # somebody else's
        gate.set()
        return await task

    assert asyncio.run(test()) == "done"
    assert spent == [1, 2, 4]


def test_a_cancellation_reaches_the_work() -> None:
    clock, seen = Clock(), []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)  # it may still have something to do
            seen.append("cleaned up")
            raise

    async def test() -> None:
        task = asyncio.ensure_future(MeteredSteps(work(), clock, lambda _: None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(test())
    assert seen == ["cancelled", "cleaned up"]


def test_an_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise LookupError

    async def test() -> None:
        await MeteredSteps(work(), Clock(), lambda _: None)

    with pytest.raises(LookupError):
        asyncio.run(test())


@pytest.mark.parametrize("version", [2, 5, 7])
def test_a_forwarded_answer_has_the_longer_wait(version: int) -> None:
    route = dispatch.ROUTES.find(CreateTopicsRequest.key, version)
    assert route is not None
    for controller_ms, broker_ms in ((0, 0), (500, 0), (0, 700), (500, 700), (700, 500)):
        response = CreateTopicsResponse(throttle_time_ms=controller_ms, topics=[])
        (frame,) = route.reply(response, 9)
        forwarded = Forwarded(bytes(frame)[4:], route.throttle_at)
        assert isinstance(forwarded, PassedOn)
        assert forwarded.throttle(broker_ms) == max(controller_ms, broker_ms)
        (expected,) = route.reply(CreateTopicsResponse(throttle_time_ms=max(controller_ms, broker_ms), topics=[]), 9)
        assert forwarded.frame() == bytes(expected)


def test_an_answer_without_a_throttle_time_in_front_is_left_alone() -> None:
    forwarded = Forwarded(b"anything", None)
    assert forwarded.throttle(300) == 300
    assert forwarded.data == b"anything"
