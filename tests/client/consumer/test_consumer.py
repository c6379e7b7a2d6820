"""A consumer with partitions of its own choice, against both brokers: positions, pauses, commits, resets."""

import asyncio
import itertools

import pytest
from tests.client.consuming import fresh_name, options_of, partitions_of, run, topic_with, until
from tests.support.waiting import WAIT_S

from ottla import (
    Cluster,
    Consumer,
    ConsumerOptions,
    NoOffset,
    OffsetAndMetadata,
    OffsetOutOfRange,
    Producer,
    ProducerOptions,
    TopicPartition,
)
from ottla.client.admin import Admin
from ottla.records.compress import Codec

EARLY = ConsumerOptions(auto_offset_reset="earliest", fetch_max_wait_ms=100)


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    fixture = "ottla_broker" if request.param == "ottla" else "real_kafka"
    return str(request.getfixturevalue(fixture).bootstrap)


async def read(consumer: Consumer, count: int, max_records: int | None = None) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while len(found) < count:
        for partition, records in (await consumer.poll(max_records)).items():
            assert records
            assert max_records is None or len(records) <= max_records
            assert [(each.topic, each.partition) for each in records] == [partition] * len(records)
            found += [(each.partition, each.offset) for each in records]
    return found


def test_poll_and_iteration_share_one_position(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 50)
        both = partitions_of(topic, 2)
        async with Consumer(cluster, EARLY) as consumer:
            consumer.assign(both)
            found = [(each.partition, each.offset) async for each in _first(consumer, 33)]
            positions = {each.partition: consumer.position(each) for each in both}
            for index, position in positions.items():
                assert position == len([each for each in found if each[0] == index])
            found += await read(consumer, 67, max_records=7)
            assert sorted(found) == [(index, offset) for index in range(2) for offset in range(50)]
            for index in range(2):
                assert [offset for partition, offset in found if partition == index] == list(range(50))
            assert await consumer.poll(timeout_ms=50) == {}
            assert [consumer.lag(each) for each in both] == [0, 0]

    run(bootstrap, test)


async def stands(consumer: Consumer, positions: dict[TopicPartition, int]) -> None:
    """Nothing is handed out, and it stands at these positions as soon as it has found out."""
    async with asyncio.timeout(WAIT_S):
        while {each: consumer.position(each) for each in positions} != positions:
            assert await consumer.poll(timeout_ms=20) == {}
    assert await consumer.poll(timeout_ms=20) == {}


async def _first(consumer: Consumer, count: int):  # type: ignore[no-untyped-def]
    for _ in range(count):
        yield await anext(consumer)


def test_seek_pause_and_resume(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 20)
        first, second = partitions_of(topic, 2)
        async with Consumer(cluster, EARLY) as consumer:
            consumer.assign([first, second])
            consumer.pause(first)
            assert {partition for partition, _ in await read(consumer, 20)} == {1}
            assert consumer.paused() == [first]
            consumer.seek(second, 18)
            assert await read(consumer, 2) == [(1, 18), (1, 19)]
            consumer.pause(second)
            consumer.resume(first)
            record = await anext(consumer)
            assert (record.partition, record.offset) == (0, 0)
            consumer.seek_to_end()
            consumer.resume(second)
            await stands(consumer, {first: 20, second: 20})
            consumer.seek_to_beginning(first)
            assert await read(consumer, 20) == [(0, offset) for offset in range(20)]
            with pytest.raises(ValueError, match="not assigned"):
                consumer.seek(TopicPartition(topic, 7), 0)

    run(bootstrap, test)


def test_questions_about_offsets(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = fresh_name()
        await Admin(cluster).topics.create(topic, 1, 1)
        async with Producer(cluster) as producer:
            for n in range(10):
                await producer.send(topic, b"v", timestamp=1_700_000_000_000 + 1000 * n, headers=[("n", b"%d" % n)])
        (partition,) = partitions_of(topic, 1)
        async with Consumer(cluster, EARLY) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            at = await consumer.offsets_for_times({partition: 1_700_000_003_500})
            assert at[partition] is not None
            assert (at[partition].offset, at[partition].timestamp) == (4, 1_700_000_004_000)
            assert await consumer.offsets_for_times({partition: 1_900_000_000_000}) == {partition: None}
            consumer.assign([partition])
            record = await anext(consumer)
            assert record.headers == (("n", b"0"),)

    run(bootstrap, test)


def test_commits_without_a_membership(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 10)
        first, second = partitions_of(topic, 2)
        options = options_of("range", fresh_name(), enable_auto_commit=False)
        async with Consumer(cluster, options) as consumer:
            consumer.assign([first, second])
            assert await consumer.committed([first]) == {}
            await consumer.commit({first: OffsetAndMetadata(4, metadata="a note"), second: 9})
            stored = await consumer.committed([first, second])
            assert (stored[first].offset, stored[first].metadata, stored[second].offset) == (4, "a note", 9)
            assert sorted(await read(consumer, 7)) == [(0, offset) for offset in range(4, 10)] + [(1, 9)]
        async with Consumer(cluster, options) as consumer:
            assert (await consumer.committed([first]))[first].offset == 4, "closing committed without being asked to"
            consumer.assign([first, second])
            await consumer.poll(2)
            consumer.seek(second, 3)
            await consumer.commit()
            stored = await consumer.committed([first, second])
            assert stored[second].offset == 3
            assert stored[first].offset == consumer.position(first)

    run(bootstrap, test)


def test_an_automatic_commit_is_of_what_was_handed_out(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 30)
        (partition,) = partitions_of(topic, 1)
        options = options_of("range", fresh_name(), auto_commit_interval_ms=10)
        async with Consumer(cluster, options) as consumer:
            consumer.assign([partition])
            for offset in range(12):
                assert (await anext(consumer)).offset == offset
        async with Consumer(cluster, options) as consumer:
            assert (await consumer.committed([partition]))[partition].offset == 12
            consumer.assign([partition])
            assert await read(consumer, 18) == [(0, offset) for offset in range(12, 30)]
            committed: list[int] = []
            while committed != [30]:  # by the clock, during later polls
                await consumer.poll(timeout_ms=20)
                committed = [each.offset for each in (await consumer.committed([partition])).values()]

    run(bootstrap, test)


def test_without_a_position(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 10)
        (partition,) = partitions_of(topic, 1)
        async with Consumer(cluster, options_of("range", fresh_name(), auto_offset_reset="none")) as consumer:
            consumer.assign([partition])
            with pytest.raises(NoOffset, match="auto_offset_reset"):
                await consumer.poll(timeout_ms=20_000)
            consumer.seek(partition, 8)
            assert await read(consumer, 2) == [(0, 8), (0, 9)]
            consumer.seek(partition, 4711)
            with pytest.raises(OffsetOutOfRange, match="4711"):
                await consumer.poll(timeout_ms=20_000)
        async with Consumer(cluster, options_of("range", fresh_name(), auto_offset_reset="latest")) as consumer:
            consumer.assign([partition])
            await stands(consumer, {partition: 10})
            async with Producer(cluster) as producer:
                await producer.send(topic, b"new", partition=0)
            assert await read(consumer, 1) == [(0, 10)]
            await Admin(cluster).topics.delete_records(topic, {0: 6})
            consumer.seek(partition, 2)
            await stands(consumer, {partition: 11})
        async with Consumer(cluster, EARLY) as consumer:
            consumer.assign([partition])
            consumer.seek(partition, 2)
            assert (await anext(consumer)).offset == 6

    run(bootstrap, test)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(bootstrap: str, isolation: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 3)
        (partition,) = partitions_of(topic, 1)
        async with Producer(cluster, ProducerOptions(transactional_id=fresh_name())) as producer:
            async with producer.transaction():
                await producer.send(topic, b"committed", partition=0)
            async with producer.transaction() as transaction:
                await producer.send(topic, b"aborted", partition=0)
                await transaction.abort()
        options = ConsumerOptions(auto_offset_reset="earliest", isolation_level=isolation, fetch_max_wait_ms=100)
        values = [b"0", b"1", b"2", b"committed"] + ([b"aborted"] if isolation == "read_uncommitted" else [])
        async with Consumer(cluster, options) as consumer:
            consumer.assign([partition])
            found = [await anext(consumer) for _ in values]
            assert [each.value for each in found] == values
            await stands(consumer, {partition: 7})  # behind the markers: what is not handed out is passed over
            assert await consumer.end_offsets([partition]) == {partition: 7}
            assert consumer.lag(partition) == 0

    run(bootstrap, test)


@pytest.mark.parametrize("codec", list(Codec))
def test_large_partitions_with_small_fetches(bootstrap: str, codec: Codec) -> None:
    async def test(cluster: Cluster) -> None:
        topic = fresh_name()
        await Admin(cluster).topics.create(topic, 3, 1)
        async with Producer(cluster, ProducerOptions(codec=codec, batch_size_bytes=2_000)) as producer:
            for n, index in itertools.product(range(300), range(3)):
                await producer.enqueue(topic, b"%0100d" % n, partition=index)
        options = ConsumerOptions(auto_offset_reset="earliest", max_partition_fetch_bytes=5_000, max_poll_records=11)
        async with Consumer(cluster, options) as consumer:
            consumer.assign(partitions_of(topic, 3))
            found = await read(consumer, 900)
            for index in range(3):
                assert [offset for partition, offset in found if partition == index] == list(range(300))

    run(bootstrap, test)


def test_a_new_assignment_and_a_caller_that_gives_up(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 5)
        first, second = partitions_of(topic, 2)
        async with Consumer(cluster, EARLY) as consumer:
            consumer.assign([first])
            assert len(await read(consumer, 5)) == 5
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(consumer), 0.03)
            consumer.assign([first, second])
            assert await read(consumer, 5) == [(1, offset) for offset in range(5)]
            assert consumer.assignment == [first, second]
            consumer.assign([second])
            assert consumer.assignment == [second]
            waiting = asyncio.create_task(anext(consumer))
            async with Producer(cluster) as producer:
                await producer.send(topic, b"late", partition=1)
            await until(waiting.done)
            assert waiting.result().offset == 5

    run(bootstrap, test)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"group_protocol": "streams"}, "classic, consumer"),
        ({"auto_offset_reset": "first"}, "earliest, latest, none"),
        ({"isolation_level": "serializable"}, "read_uncommitted, read_committed"),
        ({"assignors": ("range", "lucky")}, "not lucky"),
        ({"assignors": ()}, "not none"),
        ({"heartbeat_interval_ms": 50_000}, "less than session_timeout_ms"),
        ({"max_poll_records": 0}, "at least 1"),
    ],
)
def test_options_that_make_no_sense(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ConsumerOptions(**wrong)  # type: ignore[arg-type]
