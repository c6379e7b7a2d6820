"""What the tests of consumers on a cluster in memory share: two topics, one of them in trouble; and reading them."""

import asyncio
from typing import Any

from tests.client.memory_cluster import MemoryBrokers, What

from ottla import ClientError, ConsumedRecord, Consumer, ConsumerOptions, TopicPartition
from ottla.model.errors import ApiError
from ottla.wire.message import Request

GOOD, BAD = TopicPartition("good", 0), TopicPartition("bad", 0)


def options(**changes: Any) -> ConsumerOptions:
    chosen = {"group_id": "g", "auto_offset_reset": "earliest", "fetch_max_wait_ms": 100}
    return ConsumerOptions(**(chosen | changes))  # type: ignore[arg-type]


def brokers_with(**topics: int) -> MemoryBrokers:
    """Topics of one partition, each led by the same node, with so many records."""
    brokers = MemoryBrokers()
    for name, count in topics.items():
        brokers.make(name, 1)
        brokers.topics[name].partitions[0].append(count)
    return brokers


def always(brokers: MemoryBrokers, api: type[Request], what: What, partition: TopicPartition) -> None:
    brokers.fault = lambda request: (what, partition.__eq__) if isinstance(request, api) else None


async def read(consumer: Consumer, count: int, timeout_ms: float = 1_000) -> list[tuple[TopicPartition, int]]:
    """So many records, whatever `poll` raises in between; all that come within a minute of virtual time."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + 60
    found: list[tuple[TopicPartition, int]] = []
    while len(found) < count and loop.time() < until_s:
        try:
            for partition, records in (await consumer.poll(timeout_ms=timeout_ms)).items():
                found += [(partition, record.offset) for record in records]
        except (ApiError, ClientError):
            await asyncio.sleep(0.1)
    return found


def records_of(found: Any) -> list[ConsumedRecord]:
    """The records that a poll, a step of an iteration, or of Arrow has returned."""
    if isinstance(found, ConsumedRecord):
        return [found]
    if isinstance(found, dict):
        return [record for records in found.values() for record in records]
    return [
        ConsumedRecord(row["topic"], row["partition"], row["offset"], 0, row["key"], row["value"], (), -1)
        for row in found.to_pylist()
    ]


def places(partition: TopicPartition, count: int) -> list[tuple[TopicPartition, int]]:
    return [(partition, offset) for offset in range(count)]
