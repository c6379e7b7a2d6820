"""Reading as Arrow, against both brokers: the same records as the iterators give, whatever they were packed with."""

import asyncio
import sys
from contextlib import aclosing

import pyarrow as pa
import pytest
from tests.client.consuming import fresh_name, partitions_of, run, topic_with, until

from ottla import (
    LATEST,
    Cluster,
    Consumer,
    ConsumerOptions,
    Producer,
    ProducerOptions,
    RangeReader,
    ReadOptions,
    Span,
    TopicPartition,
)
from ottla.records.arrow import SCHEMA
from ottla.records.compress import Codec

EARLY = ConsumerOptions(auto_offset_reset="earliest", fetch_max_wait_ms=100)
Row = tuple[str, int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    fixture = "ottla_broker" if request.param == "ottla" else "real_kafka"
    return str(request.getfixturevalue(fixture).bootstrap)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    assert batch.schema == SCHEMA
    batch.validate(full=True)
    return [
        (
            row["topic"],
            row["partition"],
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            tuple((each["key"], each["value"]) for each in row["headers"] or ()),
        )
        for row in batch.to_pylist()
    ]


async def write_mixture(cluster: Cluster) -> str:
    """Two partitions with batches of every codec, with and without keys, values and headers."""
    topic = await topic_with(cluster, 2, 0)
    for codec in Codec:
        async with Producer(cluster, ProducerOptions(codec=codec)) as producer:
            for number in range(60):
                key = None if number % 3 == 0 else b"key-%d" % number
                value = None if number % 7 == 0 else b"%s-%d" % (codec.name.encode(), number)
                headers = [("h", b"%d" % number), ("none", None)][: number % 3]
                await producer.post(
                    topic, value, key, headers=headers, partition=number % 2, timestamp=1_700_000_000_000 + number
                )
    return topic


async def records_of(reader: RangeReader) -> list[Row]:
    return [tuple(record)[:7] async for record in reader]  # type: ignore[misc]


def test_ranges(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await write_mixture(cluster)
        for spans in (
            [Span(topic, 0), Span(topic, 1)],
            [Span(topic, 0, 7, 123)],
            [Span(topic, 1, 149, LATEST)],
            [Span(topic, 1, 150, LATEST)],
        ):
            wanted = await records_of(RangeReader(cluster, spans))
            for rows_min in (1, 100, 20_000):
                found = [rows_of(batch) async for batch in RangeReader(cluster, spans).arrow(rows_min=rows_min)]
                assert sorted(row for rows in found for row in rows) == sorted(wanted)
                assert rows_min != 20_000 or len(found) <= 1, "gathered"
        assert wanted == [], "the last span is empty"

    run(bootstrap, test)


def test_following_does_not_wait_for_ever(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 3)
        async with RangeReader(cluster, [Span(topic, 0, 0, None)]) as reader, aclosing(reader.arrow()) as batches:
            assert [row[2] for row in rows_of(await anext(batches))] == [0, 1, 2]

    run(bootstrap, test)


def test_a_consumer(bootstrap: str) -> None:
    """Poll, iteration and Arrow share one position, and commits follow it."""

    async def test(cluster: Cluster) -> None:
        topic = await write_mixture(cluster)
        both = partitions_of(topic, 2)
        wanted = await records_of(RangeReader(cluster, [Span(topic, 0), Span(topic, 1)]))
        group = fresh_name()
        options = ConsumerOptions(
            group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, fetch_max_wait_ms=100
        )
        async with Consumer(cluster, options) as consumer:
            consumer.assign(both)
            found: list[Row] = []
            for records in (await consumer.poll(17)).values():
                found += [tuple(record)[:7] for record in records]  # type: ignore[misc]
            async for record in consumer:
                found.append(tuple(record)[:7])  # type: ignore[arg-type]
                if len(found) == 40:
                    break
            async with aclosing(consumer.arrow(rows_min=50, linger_ms=20)) as batches:
                async for batch in batches:
                    found += rows_of(batch)
                    for partition in both:
                        read = [row[2] for row in found if row[1] == partition.partition]
                        assert consumer.position(partition) == (max(read) + 1 if read else 0)
                    if len(found) >= 200:
                        break
            await consumer.commit()
            committed = await consumer.committed(both)
            assert {at: place.offset for at, place in committed.items()} == {at: consumer.position(at) for at in both}
        async with Consumer(cluster, options) as consumer:
            consumer.assign(both)
            async for batch in consumer.arrow():
                found += rows_of(batch)
                if len(found) == len(wanted):
                    break
        assert sorted(found) == sorted(wanted)

    run(bootstrap, test)


def test_automatic_commits_and_pauses(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 10)
        first, second = partitions_of(topic, 2)
        options = ConsumerOptions(group_id=fresh_name(), auto_offset_reset="earliest", auto_commit_interval_ms=1)
        async with Consumer(cluster, options) as consumer:
            consumer.assign([first, second])
            consumer.pause(second)
            batches = consumer.arrow(linger_ms=10)
            assert {row[1] for row in rows_of(await anext(batches))} == {0}
            consumer.resume(second)
            await asyncio.sleep(0.01)
            assert {row[1] for row in rows_of(await anext(batches))} == {1}
            await batches.aclose()
        async with Consumer(cluster, options) as consumer:
            committed = await consumer.committed([first, second])
            assert {at: place.offset for at, place in committed.items()} == {first: 10, second: 10}

    run(bootstrap, test)


def test_a_member_of_a_group(bootstrap: str) -> None:
    """Partitions go to another member in between: what was not handed out is the other's to read."""

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 4, 50)
        options = ConsumerOptions(
            group_id=fresh_name(), auto_offset_reset="earliest", heartbeat_interval_ms=100, fetch_max_wait_ms=100
        )
        found: list[tuple[int, int]] = []

        async def read(consumer: Consumer) -> None:
            consumer.subscribe([topic])
            async for batch in consumer.arrow(rows_min=10, linger_ms=10):
                found.extend(row[1:3] for row in rows_of(batch))

        first, second = Consumer(bootstrap, options), Consumer(bootstrap, options)
        tasks = [asyncio.create_task(read(first))]
        await until(lambda: found)
        tasks.append(asyncio.create_task(read(second)))
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        for consumer in (first, second):
            await consumer.close()
        await asyncio.gather(*tasks)
        async with Consumer(cluster, options) as third:
            tasks = [asyncio.create_task(read(third))]
            await until(lambda: len(found) >= 200, lambda: len(found))
        await asyncio.gather(*tasks)
        assert sorted(found) == [(index, offset) for index in range(4) for offset in range(50)]

    run(bootstrap, test)


def test_aborted_transactions_are_left_out(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 0)
        async with Producer(cluster, ProducerOptions(transactional_id=topic)) as producer:
            for number in range(6):
                async with producer.transaction() as txn:
                    await producer.send(topic, b"%d" % number)
                    if number % 2:
                        await txn.abort()
        reader = RangeReader(cluster, [Span(topic, 0)], ReadOptions(read_committed=True))
        found = [row for batch in [each async for each in reader.arrow()] for row in rows_of(batch)]
        assert [row[5] for row in found] == [b"0", b"2", b"4"]
        options = ConsumerOptions(auto_offset_reset="earliest", isolation_level="read_committed")
        async with Consumer(cluster, options) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            async with aclosing(consumer.arrow(linger_ms=10)) as batches:
                assert [row[5] for row in rows_of(await anext(batches))] == [b"0", b"2", b"4"]
            assert consumer.position(TopicPartition(topic, 0)) == 12, "behind the last marker"

    run(bootstrap, test)


def test_the_iteration_ends_with_the_consumer() -> None:
    async def test() -> None:
        consumer = Consumer("127.0.0.1:1", EARLY)

        async def read() -> list[pa.RecordBatch]:
            return [batch async for batch in consumer.arrow()]

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        await consumer.close()
        assert await reading == []

    asyncio.run(test())


def test_without_pyarrow_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with Cluster("127.0.0.1:1") as cluster:
            await anext(RangeReader(cluster, [Span("t", 0)]).arrow())

    monkeypatch.delitem(sys.modules, "ottla.records.arrow")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install .*\[arrow\]"):
        asyncio.run(test())
