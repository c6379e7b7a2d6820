"""A plan that the console carries out, and the end of its session: no throttle stays behind."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from ottla.client.errors import NotConnected
from ottla.cluster.balance.loads import BalancePlan, ReplicaMove
from ottla.console.access import Access
from ottla.console.options import ConsoleOptions
from ottla.console.pages.brokers.moving import ReplicaMoves
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.moves import Mover
from ottla.operations.cluster.throttle import NOTHING, Throttles, find
from ottla.testing.broker import EmbeddedBroker


class Heard(Exception):
    """What a part of a session fails with."""


async def begun(access: Access) -> ReplicaMoves:
    """A plan with a throttle that is set; none of its moves has begun."""
    (node,) = [each.node_id for each in (await access.admin.nodes.describe()).brokers]
    if "slow" not in await access.admin.topics.names():
        await access.admin.topics.create("slow", 1)
    move = ReplicaMove(TopicPartition("slow", 0), (node,), (node, node + 1), 0)
    running = ReplicaMoves.of(access)
    running.begin(running.keep("balancing", BalancePlan((move,), {}, {}, ()), [move]), rate=1_000)
    while not (await find(access.admin)).brokers:
        assert running.is_running, running.failure
        await asyncio.sleep(0.01)
    return running


@pytest.fixture
def _waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: Mover) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Mover, "run", run)


def left(broker: EmbeddedBroker) -> Throttles:
    async def look() -> Throttles:
        access = Access(ConsoleOptions(broker.bootstrap))
        try:
            return await find(access.admin)
        finally:
            await access.close()

    return asyncio.run(look())


@pytest.mark.usefixtures("_waits")
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_the_end_of_a_session_takes_the_throttle_off(broker: EmbeddedBroker, is_cancelled: bool) -> None:
    """Also right before the process ends, and if the visitor has cancelled the plan a moment ago."""

    async def visit() -> None:
        access = Access(ConsoleOptions(broker.bootstrap))
        running = await begun(access)
        if is_cancelled:
            running.stop()
            await asyncio.sleep(0)
        await access.close()

    asyncio.run(visit())  # cancels what still runs, as the process of the console does
    assert left(broker) == NOTHING


@pytest.mark.usefixtures("_waits")
def test_a_part_that_fails_to_close_leaves_the_others_to_be_closed(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise Heard

    async def visit() -> None:
        access = Access(ConsoleOptions(broker.bootstrap))
        access.kept(int, lambda _: 1, fail)
        await begun(access)
        await access.close()
        with pytest.raises(NotConnected):
            await access.admin.nodes.describe()

    asyncio.run(visit())
    assert left(broker) == NOTHING
    (logged,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert logged.name == "ottla.console.access"


def test_the_parts_of_a_session_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else a session with many parts would outlast the patience of the process that waits for the console."""
    monkeypatch.setattr(limits, "CONSOLE_CLOSE_S", 0.3)

    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    async def visit() -> None:
        access = Access(ConsoleOptions("127.0.0.1:1"))
        for kind in (int, str, bytes, list, dict):
            access.kept(kind, lambda _, kind=kind: kind(), hang)
        began_s = time.monotonic()
        await access.close()
        assert 0.3 <= time.monotonic() - began_s < 1.2

    asyncio.run(visit())
