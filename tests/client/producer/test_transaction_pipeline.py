"""Consume, transform, produce with our own consumer and producer: exactly once, however often a worker is cut down."""

import asyncio
import itertools
import random

import pytest

from ottla import Cluster, Producer, ProducerOptions, RangeReader, ReadOptions, Span
from ottla.client.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.options import ConsumerOptions
from ottla.model.ids import TopicPartition

_names = (f"pipeline-{n}" for n in itertools.count())
PARTITIONS, RECORDS = 2, 600
# How the workers share the partitions, and how many are cut down: a new member of a group has to wait some seconds.
CUTS = {"assigned": 5, "classic": 1, "consumer": 1}


class Cut(Exception):
    """The end of a worker in the middle of a transaction."""


async def work(cluster: Cluster, name: str, sharing: str, rng: random.Random | None) -> None:
    """Read from one topic, write to the other; positions and results are one transaction.

    With `rng` the worker comes to its end after some transactions: inside of one, or at any moment of its commit.
    """
    left = rng.randint(0, 3) if rng is not None else -1
    reading = ConsumerOptions(
        group_id=name,
        group_protocol=sharing if sharing != "assigned" else "classic",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        max_poll_records=20,
    )
    writing = ProducerOptions(transactional_id=name, linger_ms=0, batch_size_bytes=200)
    async with Consumer(cluster, reading) as consumer, Producer(cluster, writing) as producer:
        await producer.init_transactions()  # first, so that what the last one left open does not hold us up
        if sharing == "assigned":
            consumer.assign([TopicPartition(f"{name}-in", index) for index in range(PARTITIONS)])
        else:
            consumer.subscribe([f"{name}-in"])
        while True:
            found = await consumer.poll(timeout_ms=200)
            if not found:
                continue
            async with producer.transaction() as txn:
                for partition, records in found.items():
                    for record in records:
                        await producer.post(f"{name}-out", b"done " + (record.value or b""), partition=partition[1])
                ends = {partition: records[-1].offset + 1 for partition, records in found.items()}
                await txn.send_offsets(ends, consumer.group_metadata())
                if rng is not None and left == 0:
                    _cut(rng)
            left -= 1


def _cut(rng: random.Random) -> None:
    if rng.random() < 0.4:
        raise Cut
    worker = asyncio.current_task()
    assert worker is not None
    asyncio.get_running_loop().call_later(rng.uniform(0, 0.005), worker.cancel)


async def results(cluster: Cluster, name: str) -> list[bytes | None]:
    spans = [Span(f"{name}-out", index) for index in range(PARTITIONS)]
    async with RangeReader(cluster, spans, ReadOptions(read_committed=True)) as reader:
        return sorted([record.value async for record in reader], key=lambda each: each or b"")


async def run_to_end(bootstrap: str, name: str, sharing: str, rng: random.Random) -> list[bytes | None]:
    """What a row of workers wrote, all but the last of which are cut down."""
    async with asyncio.timeout(90), Cluster(bootstrap) as cluster:
        for topic in ("in", "out"):
            await Admin(cluster).topics.create(f"{name}-{topic}", PARTITIONS)
        async with Producer(cluster) as producer:
            for n in range(RECORDS):
                await producer.post(f"{name}-in", b"%04d" % n, partition=n % PARTITIONS)
        for _ in range(CUTS[sharing]):
            worker = asyncio.create_task(work(cluster, name, sharing, rng))
            await asyncio.wait([worker])
            if not worker.cancelled():
                assert isinstance(worker.exception(), Cut)
        worker = asyncio.create_task(work(cluster, name, sharing, None))
        try:
            while len(found := await results(cluster, name)) < RECORDS:
                await asyncio.wait([worker], timeout=0.05)
                assert not worker.done(), worker.exception()
        finally:
            worker.cancel()
            await asyncio.wait([worker])
        return found


@pytest.mark.parametrize("broker", ["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
@pytest.mark.parametrize("sharing", list(CUTS))
def test_exactly_once(request: pytest.FixtureRequest, broker: str, sharing: str) -> None:
    bootstrap = str(request.getfixturevalue("ottla_broker" if broker == "ottla" else "real_kafka").bootstrap)
    found = asyncio.run(run_to_end(bootstrap, f"{next(_names)}-{broker}", sharing, random.Random(5)))
    assert found == [b"done %04d" % n for n in range(RECORDS)]
