"""Records that cannot be decoded: the others are read, and what waits in the loop runs."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.client.memory_cluster import POISON, MemoryBrokers, MemoryClient, damaged, run
from tests.client.memory_log import Partition
from tests.client.memory_reading import BAD, GOOD, always, brokers_with, options, places

from ottla import Consumer, RangeReader, Span, TopicPartition
from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.fetched import Fetched, RawBatch, decode_batch
from ottla.model.errors import ApiError
from ottla.records.batch import headers
from ottla.wire.messages.records.fetch import FetchRequest


def poisoned() -> MemoryBrokers:
    """The second batch of one of two topics cannot be decoded, although it is whole."""
    brokers = brokers_with(good=10, bad=10)
    for partition in (GOOD, BAD):
        brokers.log(partition).append(5)
    log = brokers.log(BAD)
    last = log.batches[-1]
    log.batches[-1] = last._replace(data=damaged(last.data, is_whole=True))
    log.append(5)
    return brokers


def offsets_of(batches: Sequence[RawBatch]) -> list[tuple[TopicPartition, int]]:
    """What stands for `pyarrow.RecordBatch` here."""
    return [(raw.partition, record.offset) for raw in batches for record in decode_batch(raw)]


async def take(consumer: Consumer, way: str) -> list[tuple[TopicPartition, int]]:
    if way == "poll":
        found = await consumer.poll(timeout_ms=5_000)
        return [(partition, record.offset) for partition, records in found.items() for record in records]
    if way == "iterate":
        record = await anext(consumer)
        return [(TopicPartition(record.topic, record.partition), record.offset)]
    return await anext(consumer.arrow())  # type: ignore[return-value]


@pytest.mark.parametrize("way", ["poll", "iterate", "arrow"])
def test_records_that_cannot_be_read_take_no_other_with_them(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.consumer.consumer.converter", lambda: offsets_of)

    async def test() -> None:
        brokers = poisoned()
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            consumer.assign([BAD, GOOD])
            seen: list[tuple[TopicPartition, int]] = []
            failures: list[str] = []
            while len(seen) < 25 or len(failures) < 2:
                try:
                    seen += await take(consumer, way)
                except ApiError as error:
                    failures.append(str(error))
            assert sorted(seen) == [*places(BAD, 10), *places(GOOD, 15)]
            assert [each for each in seen if each[0] == GOOD] == places(GOOD, 15)
            assert (consumer.position(BAD), consumer.position(GOOD)) == (10, 15)
            assert all("bad-0" in each for each in failures)
            consumer.seek(BAD, 15)
            while len(seen) < 30:
                seen += await take(consumer, way)
            assert seen[25:] == [(BAD, offset) for offset in range(15, 20)]

    run(test)


@pytest.mark.parametrize("way", ["poll", "iterate", "arrow"])
def test_records_that_cannot_be_read_hold_up_neither_the_others_nor_the_loop(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: whoever caught the failure and polled again was told again at once, and nothing else ever ran."""
    monkeypatch.setattr("ottla.client.consumer.consumer.converter", lambda: offsets_of)

    async def test() -> None:
        brokers = brokers_with(good=10, bad=10)
        always(brokers, FetchRequest, POISON, BAD)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            consumer.assign([BAD, GOOD])
            loop = asyncio.get_running_loop()
            seen: list[tuple[TopicPartition, int]] = []
            raised_s: list[float] = []
            turns: list[None] = []
            for _ in range(1_000):
                if len(raised_s) == 10:
                    break
                before = len(turns)
                loop.call_soon(turns.append, None)
                try:
                    seen += await take(consumer, way)
                except ApiError:
                    assert len(turns) > before, "the loop had its turn"
                    raised_s.append(loop.time())
                    brokers.log(GOOD).append(1)
            seen += await take(consumer, way)
            assert seen == places(GOOD, 20)
            assert (consumer.position(BAD), list(consumer.failures())) == (0, [BAD])
            assert raised_s[-1] - raised_s[0] > 1, "it is not tried again at once"

    run(test)


def test_taking_moves_no_position() -> None:
    """Not even where nothing is left of a batch: whoever hands out moves it."""
    log = Partition(leader=1)
    log.append(10)
    ((_, _, data),) = log.batches
    ((_, header),) = headers(memoryview(data))
    place = AssignedPartition(GOOD)
    place.move(0)
    assert place.cursor is not None
    empty = RawBatch(GOOD, header, memoryview(data), start=10, end=None)
    place.add(Fetched(place.cursor, [empty, empty], next_offset=12))
    taken = place.take(100)
    assert (taken, place.position, place.has_records) == (([], 12), 0, False)
    place.hand_out(*taken)
    assert place.position == 12


def test_a_poll_that_does_not_wait_lets_the_loop_run() -> None:
    async def test() -> None:
        brokers = brokers_with(good=10)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            consumer.assign([GOOD])
            turns: list[None] = []
            asyncio.get_running_loop().call_soon(turns.append, None)
            assert await consumer.poll(timeout_ms=0) == {}
            assert turns

    run(test)


@pytest.mark.parametrize("way", ["records", "arrow"])
def test_a_reader_hands_out_what_can_be_read(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.consumer.ranges.converter", lambda: offsets_of)

    async def test() -> None:
        async with MemoryClient(poisoned()) as cluster:
            reader = RangeReader(cluster, [Span("bad", 0), Span("good", 0)])
            seen: list[tuple[TopicPartition, int]] = []

            async def read_all() -> None:
                if way == "arrow":
                    async for columns in reader.arrow():
                        seen.extend(columns)  # type: ignore[arg-type]
                else:
                    async for record in reader:
                        seen.append((TopicPartition(record.topic, record.partition), record.offset))  # noqa: PERF401 - as they come

            for _ in range(2):
                with pytest.raises(ApiError, match="bad-0"):
                    await read_all()
                assert sorted(seen) == [*places(BAD, 10), *places(GOOD, 15)]
                assert reader.positions() == {BAD: 10, GOOD: 15}

    run(test)
