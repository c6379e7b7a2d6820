"""Commits of one consumer are stored in the order in which they were asked for, whatever refuses the first try."""

import asyncio
from typing import Any

import pytest
from tests.client.memory_cluster import MemoryBrokers, MemoryClient, run
from tests.client.memory_groups import MemoryGroup
from tests.client.memory_reading import GOOD, brokers_with, options, read

from ottla import ClientError, Consumer, TopicPartition
from ottla.client.consumer.commit_turns import CommitTurns
from ottla.client.consumer.group_offsets import GroupOffsets
from ottla.client.errors import CommitFailed
from ottla.model.errors import ErrorCode
from ottla.wire.message import Request
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest


def refused_at_first(brokers: MemoryBrokers, until_s: float, offset: int) -> None:
    """Commits of this offset are refused for so many seconds."""
    loop = asyncio.get_running_loop()
    over_at_s = loop.time() + until_s

    def fault(request: Request) -> Any:
        if isinstance(request, OffsetCommitRequest) and loop.time() < over_at_s:
            [topic] = request.topics
            if topic.partitions[0].committed_offset == offset:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, GOOD.__eq__
        return None

    brokers.fault = fault


def noted(brokers: MemoryBrokers) -> list[int]:
    """All committed offsets, in the order in which they are stored."""
    stored: list[int] = []
    brokers.stored = lambda partition, offset: stored.append(offset)
    return stored


def test_a_commit_does_not_overtake_another() -> None:
    async def test() -> None:
        brokers = brokers_with(good=30)
        stored = noted(brokers)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options(enable_auto_commit=False)) as consumer:
            consumer.assign([GOOD])
            refused_at_first(brokers, until_s=2, offset=10)
            await asyncio.gather(*(consumer.commit({GOOD: offset}) for offset in (10, 20, 30)))
            assert stored == [10, 20, 30]

    run(test)


def test_an_automatic_commit_does_not_overtake() -> None:
    """Defect: the commit that the caller had asked for was tried again, and stored, after a later automatic one."""

    async def test() -> None:
        brokers = brokers_with(good=30)
        stored = noted(brokers)
        reading = options(max_poll_records=10, auto_commit_interval_ms=500)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, reading) as consumer:
            consumer.assign([GOOD])
            await read(consumer, 10)
            refused_at_first(brokers, until_s=2, offset=10)
            asking = asyncio.create_task(consumer.commit())
            await asyncio.sleep(0.002)  # it has begun
            await read(consumer, 10)
            await asyncio.sleep(0.7)
            await read(consumer, 10)  # an automatic commit is due
            await asking
            await asyncio.sleep(1)
            assert stored == [10, 20]

    run(test)


def test_a_commit_does_not_overtake_an_automatic_one() -> None:
    async def test() -> None:
        brokers = brokers_with(good=30)
        stored = noted(brokers)
        reading = options(max_poll_records=10, auto_commit_interval_ms=100)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, reading) as consumer:
            consumer.assign([GOOD])
            await read(consumer, 10)
            await asyncio.sleep(0.2)
            refused_at_first(brokers, until_s=2, offset=10)
            await read(consumer, 10)  # an automatic commit is due
            await asyncio.sleep(0.1)
            await consumer.commit()
            assert stored == [10, 20]

    run(test)


def test_an_automatic_commit_that_has_not_begun_is_not_overtaken() -> None:
    async def test() -> None:
        brokers = brokers_with(good=30)
        stored = noted(brokers)
        reading = options(max_poll_records=10, auto_commit_interval_ms=100)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, reading) as consumer:
            consumer.assign([GOOD])
            await read(consumer, 20)
            await asyncio.sleep(0.2)
            found = await consumer.poll()  # makes the task of the automatic commit, and returns at once
            assert found
            await consumer.commit()
            assert stored == [20, 30]

    run(test)


def test_who_gives_up_lets_nobody_overtake() -> None:
    async def test() -> None:
        brokers = brokers_with(good=30)
        stored = noted(brokers)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options(enable_auto_commit=False)) as consumer:
            consumer.assign([GOOD])
            refused_at_first(brokers, until_s=2, offset=10)
            first, second, third = (asyncio.create_task(consumer.commit({GOOD: offset})) for offset in (10, 20, 30))
            await asyncio.sleep(0.002)
            second.cancel()
            await asyncio.gather(first, third)
            assert stored == [10, 30]

    run(test)


def test_a_commit_waits_no_longer_than_its_time() -> None:
    async def test() -> None:
        brokers = brokers_with(good=30)
        stored = noted(brokers)
        async with (
            MemoryClient(brokers, api_timeout_ms=1_000) as cluster,
            Consumer(cluster, options(enable_auto_commit=False)) as consumer,
        ):
            consumer.assign([GOOD])
            brokers.answer, answer = never, brokers.answer  # type: ignore[method-assign, assignment]
            first = asyncio.create_task(consumer.commit({GOOD: 10}))
            await asyncio.sleep(0.5)
            with pytest.raises(ClientError, match="not answered within 1000 ms"):
                await consumer.commit({GOOD: 20})
            first.cancel()
            brokers.answer = answer  # type: ignore[method-assign]
            await consumer.commit({GOOD: 30})
            assert stored == [30]

    run(test)


class Losing:
    """A listener that notes that the partitions were lost."""

    has_lost = False

    def on_assigned(self, partitions: object) -> None: ...

    def on_revoked(self, partitions: object) -> None: ...

    def on_lost(self, partitions: object) -> None:
        self.has_lost = True


async def never(*_: object) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_nothing_is_stored_for_a_partition_that_another_has_now(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: a commit that had waited was made in the name of a later membership, and set the new owner's back."""

    async def test() -> None:
        brokers = brokers_with(good=30)
        group = brokers.group = MemoryGroup(protocol)
        stored = noted(brokers)
        reading = options(group_protocol=protocol, heartbeat_interval_ms=300, enable_auto_commit=False)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, reading) as consumer:
            listener = Losing()
            consumer.subscribe(["good"], listener)
            assert len(await read(consumer, 30)) == 30
            go_on = asyncio.Event()
            commit = GroupOffsets.commit

            async def hold_up(self: GroupOffsets, *args: Any) -> Any:
                await go_on.wait()
                return await commit(self, *args)

            monkeypatch.setattr(GroupOffsets, "commit", hold_up)
            first = asyncio.create_task(consumer.commit({GOOD: 5}))
            second = asyncio.create_task(consumer.commit({GOOD: 10}))
            [name] = group.state.members
            group.state.forget(name)  # as if its session had ended
            while not (listener.has_lost and consumer.assignment):
                await consumer.poll(timeout_ms=100)
            go_on.set()
            with pytest.raises(CommitFailed):
                await first
            with pytest.raises(CommitFailed, match="revoked"):
                await second
            assert stored == []
            assert consumer.assignment == [TopicPartition("good", 0)]

    run(test)


def test_turns() -> None:
    async def test() -> None:
        turns = CommitTurns()
        first, second, third = turns.take(), turns.take(), turns.take()
        assert await first.come(1)
        assert not await second.come(1)
        second.end()
        assert not await third.come(1), "the first is not over"
        first.end()
        assert await third.come(1)
        assert not third.over.done()
        third.end()
        assert await turns.take().come(0)

    run(test)
