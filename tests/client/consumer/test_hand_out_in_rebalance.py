"""While a member's partitions are being revoked, or it is being closed, it hands out nothing: what is handed out then
would be committed before it is handled, or given to another member as well."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from tests.client.memory_cluster import MemoryBrokers, MemoryClient, run
from tests.client.memory_groups import MemoryGroup

from ottla import ClientError, Consumer, ConsumerOptions, TopicPartition
from ottla.wire.message import Request
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest

PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1)]
Place = tuple[TopicPartition, int]
protocols = pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])


def options(kind: str, **changes: Any) -> ConsumerOptions:
    chosen = {
        "group_id": "g",
        "group_protocol": "consumer" if kind == "consumer" else "classic",
        "assignors": ("range",) if kind == "consumer" else (kind,),
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 300,
        "fetch_max_wait_ms": 100,
        "auto_commit_interval_ms": 500,
    }
    return ConsumerOptions(**(chosen | changes))  # type: ignore[arg-type]


def brokers_for(kind: str) -> MemoryBrokers:
    brokers = MemoryBrokers()
    brokers.group = MemoryGroup("consumer" if kind == "consumer" else "classic")
    brokers.make("a", len(PARTITIONS))
    return brokers


class Revoking:
    """A listener that takes its time; `partitions` are those that are being revoked."""

    def __init__(self, takes_s: float) -> None:
        self.partitions: list[TopicPartition] = []
        self.begun = asyncio.Event()
        self._takes_s = takes_s

    def on_assigned(self, partitions: object) -> None: ...

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = list(partitions)
        self.begun.set()
        await asyncio.sleep(self._takes_s)
        self.partitions = []

    def on_lost(self, partitions: object) -> None: ...


async def append_for_ever(brokers: MemoryBrokers) -> None:
    while True:
        for partition in PARTITIONS:
            brokers.log(partition).append(1)
        await asyncio.sleep(0.1)


async def poll_for_ever(consumer: Consumer, handled: set[Place]) -> None:
    while True:
        found = await consumer.poll(timeout_ms=200)
        handled.update((partition, record.offset) for partition, records in found.items() for record in records)


def rows(columns: Any) -> list[Place]:
    return [(TopicPartition(row["topic"], row["partition"]), row["offset"]) for row in columns.to_pylist()]


@protocols
@pytest.mark.parametrize("slow", ["listener", "commits"])
def test_arrow_hands_out_nothing_while_partitions_are_revoked(kind: str, slow: str) -> None:
    """Defect: the linger time ended in the middle of a rebalance, and what there was was handed out."""
    brokers = brokers_for(kind)
    handled: set[Place] = set()
    in_hand: list[Place] = []
    is_slow = False

    def stored(partition: TopicPartition, offset: int) -> None:
        unhandled = [at for at in range(offset) if (partition, at) not in handled]
        assert not unhandled, f"{partition}: {offset} was committed, and {unhandled[0]} is not handled"

    async def hold_up(node_id: int, request: Request, version: int) -> Any:
        if is_slow and isinstance(request, OffsetCommitRequest):
            await asyncio.sleep(2.5)
        return await answer(node_id, request, version)

    answer, brokers.answer, brokers.stored = brokers.answer, hold_up, stored  # type: ignore[method-assign]

    async def test() -> None:
        nonlocal is_slow
        listener = Revoking(2.0 if slow == "listener" else 0.1)
        batches = 0

        async def read(consumer: Consumer) -> None:
            nonlocal batches
            async for columns in consumer.arrow(rows_min=100_000, linger_ms=1_000):
                in_hand[:] = rows(columns)
                early = [each for each in in_hand if each[0] in listener.partitions]
                assert not early, "handed out while the partition is being revoked"
                assert not handled.intersection(in_hand), "handed out to another member as well"
                batches += 1
                await asyncio.sleep(0.7)  # the caller works
                handled.update(in_hand)

        async with MemoryClient(brokers) as cluster:
            consumer, other = Consumer(cluster, options(kind)), Consumer(cluster, options(kind))
            consumer.subscribe(["a"], listener)
            tasks = [asyncio.create_task(append_for_ever(brokers)), asyncio.create_task(read(consumer))]
            await asyncio.sleep(5)
            is_slow = slow == "commits"
            other.subscribe(["a"])
            tasks.append(asyncio.create_task(poll_for_ever(other, handled)))
            done, _ = await asyncio.wait(tasks, timeout=10, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            brokers.stored = lambda partition, offset: None
            await asyncio.gather(consumer.close(), other.close())
            for task in done:
                task.result()
            assert batches > 3
            assert listener.begun.is_set()

    run(test)


@pytest.mark.parametrize("way", ["poll", "iterate", "arrow"])
def test_nothing_is_handed_out_by_a_consumer_that_is_being_closed(way: str) -> None:
    """Defect: who read when `close` was called in another task got records, and the last commit was behind them."""
    brokers = brokers_for("cooperative-sticky")

    async def read(consumer: Consumer) -> list[Place]:
        if way == "poll":
            found = await consumer.poll(timeout_ms=60_000)
            return [(partition, record.offset) for partition, records in found.items() for record in records]
        if way == "arrow":
            return [place async for columns in consumer.arrow(rows_min=1, linger_ms=10) for place in rows(columns)]
        return [(TopicPartition(record.topic, record.partition), record.offset) async for record in consumer]

    async def test() -> None:
        listener = Revoking(3.0)
        async with MemoryClient(brokers) as cluster:
            consumer = Consumer(cluster, options("cooperative-sticky"))
            consumer.subscribe(["a"], listener)
            while len(consumer.assignment) < len(PARTITIONS):
                await consumer.poll(timeout_ms=100)
            other = Consumer(cluster, options("cooperative-sticky"))
            other.subscribe(["a"])
            joining = asyncio.create_task(other.poll(timeout_ms=20_000))
            reading = asyncio.create_task(read(consumer))
            await listener.begun.wait()
            for partition in PARTITIONS:  # a fetch is under way, and brings them while the listener works
                brokers.log(partition).append(5)
            await asyncio.sleep(1)
            await consumer.close()
            found: list[Place] = []
            with suppress(ClientError):  # a `poll` says that the consumer is closed
                found = await reading
            committed = dict(brokers.committed)
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
            await other.close()
            assert found == []
            assert not any(committed.values())

    run(test)
