"""Pages of records: to and fro, over gaps, merged by time, bounded in bytes; and searches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest
from tests.server.talk import produce
from tests.support.requests.raw import RawConnection

from ottla.client.admin import Admin
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.consumer.ranges import Span
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.records.contents import RecordReader
from ottla.operations.records.json_paths import JsonCondition, json_condition
from ottla.operations.records.reading import RecordPage, read_page
from ottla.operations.records.searching import SearchPlace, SearchStep, Wanted, search
from ottla.records.batch import read_header
from ottla.records.build import assemble_like, build_batch
from ottla.records.compress import Codec
from ottla.testing.broker import EmbeddedBroker

T = TypeVar("T")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def run(broker: EmbeddedBroker, work: Callable[[Admin], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Admin(broker.bootstrap) as admin:
            return await work(admin)

    return asyncio.run(main())


async def bounds_of(admin: Admin, topic: str) -> dict[int, PartitionBounds]:
    return await admin.topics.bounds(topic)


async def all_pages(admin: Admin, topic: str, *, forward: bool, count: int) -> list[RecordPage]:
    """Every page from one end to the other."""
    bounds = await bounds_of(admin, topic)
    place = {index: each.start if forward else each.end for index, each in bounds.items()}
    pages = []
    while True:
        page = await read_page(admin.cluster, topic, place, bounds, forward=forward, count=count)
        if not page.records:
            return pages
        pages.append(page)
        place = page.high if forward else page.low


def places(page: RecordPage) -> list[TopicPartition]:
    return [TopicPartition(str(each.partition), each.offset) for each in page.records]


async def fill(admin: Admin, topic: str, partitions: int, records: int, *, every: int = 1) -> None:
    """Records whose times alternate between the partitions; with `every`, a transaction's marker after so many."""
    await admin.topics.create(topic, partitions)
    async with Producer(admin.cluster, ProducerOptions(transactional_id=f"id-{topic}")) as producer:
        for begin in range(0, records, every):
            async with producer.transaction():
                for number in range(begin, min(begin + every, records)):
                    value = f'{{"n": {number}}}'.encode()
                    await producer.post(
                        topic, value, b"%d" % number, partition=number % partitions, timestamp=number + 1
                    )


@pytest.mark.parametrize("forward", [True, False])
def test_all_partitions_page_by_page_in_the_order_of_time(broker: EmbeddedBroker, forward: bool) -> None:
    topic = f"merged-{forward}"

    async def work(admin: Admin) -> list[RecordPage]:
        await fill(admin, topic, 3, 100, every=100)
        return await all_pages(admin, topic, forward=forward, count=7)

    pages = run(broker, work)
    times = [record.timestamp for page in pages for record in page.records]
    assert times == (list(range(1, 101)) if forward else list(range(100, 0, -1)))
    assert {len(page.records) for page in pages[:-1]} == {7}


@pytest.mark.parametrize("forward", [True, False])
def test_gaps_are_passed(broker: EmbeddedBroker, forward: bool) -> None:
    topic = f"gaps-{forward}"

    async def work(admin: Admin) -> list[RecordPage]:
        await fill(admin, topic, 1, 60, every=1)  # each second offset is a marker
        await admin.topics.delete_records(topic, {0: 20})
        return await all_pages(admin, topic, forward=forward, count=9)

    offsets = [record.offset for page in run(broker, work) for record in page.records]
    assert sorted(offsets) == list(range(20, 120, 2))
    assert offsets == sorted(offsets, reverse=not forward)


def test_there_and_back_again(broker: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> tuple[RecordPage, RecordPage]:
        await fill(admin, "back", 4, 80, every=80)
        bounds = await bounds_of(admin, "back")
        ends = {index: each.end for index, each in bounds.items()}
        newest = await read_page(admin.cluster, "back", ends, bounds, forward=False, count=10)
        older = await read_page(admin.cluster, "back", newest.low, bounds, forward=False, count=10)
        again = await read_page(admin.cluster, "back", older.high, bounds, forward=True, count=10)
        return newest, again

    newest, again = run(broker, work)
    assert places(again) == places(newest)[::-1]


def test_large_records_end_a_page_early(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_RECORDS_BYTES_MAX", 300_000)

    async def work(admin: Admin) -> list[list[RecordPage]]:
        await admin.topics.create("large")
        async with Producer(admin.cluster) as producer:
            for _ in range(10):
                await producer.send("large", b"x" * 100_000)
        return [await all_pages(admin, "large", forward=forward, count=50) for forward in (True, False)]

    for pages in run(broker, work):
        assert pages[0].is_cut
        assert 1 < len(pages) < 10
        assert sorted(record.offset for page in pages for record in page.records) == list(range(10))


def test_a_place_outside_of_the_log_is_moved_into_it(broker: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> list[int]:
        await fill(admin, "outside", 1, 5, every=5)
        bounds = await bounds_of(admin, "outside")
        page = await read_page(admin.cluster, "outside", {0: 2**62}, bounds, forward=False, count=2)
        return [each.offset for each in page.records]

    assert run(broker, work) == [4, 3]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (Wanted(SearchPlace.path, condition=json_condition("$.n >= 290")), 10),
        (Wanted(SearchPlace.value, '"N":29'), 11),  # as it is shown, of any case
        (Wanted(SearchPlace.key, "29"), 13),
        (Wanted(SearchPlace.header, "29"), 0),
        (Wanted(SearchPlace.anywhere, "299"), 1),
    ],
)
def test_a_search(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, wanted: Wanted, count: int) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SEARCH_PORTION_BYTES", 1)

    async def work(admin: Admin) -> list[SearchStep]:
        if "searched" not in await admin.topics.names():
            await fill(admin, "searched", 3, 300, every=10)
        bounds = await bounds_of(admin, "searched")
        spans = [Span("searched", index, each.start, each.end) for index, each in bounds.items()]
        return [step async for step in search(admin.cluster, spans, wanted, RecordReader(None))]

    steps = run(broker, work)
    last = steps[-1]
    assert len(steps) > 10
    assert sum(len(step.found) for step in steps) == count
    assert (last.is_over, last.looked_at, last.passed == last.total, last.failure) == (True, 300, True, "")


def test_a_search_can_be_left(broker: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> int:
        await fill(admin, "left", 1, 50, every=50)
        steps = search(admin.cluster, [Span("left", 0, 0, 50)], Wanted(SearchPlace.value, "n"), RecordReader(None))
        first = await anext(steps)
        await steps.aclose()
        return len(first.found)

    assert run(broker, work) == 50


def damaged(topic: str, broker: EmbeddedBroker) -> None:
    """Two good batches, and between them one whose records cannot be unpacked although its CRC is right."""
    broken = assemble_like(read_header(build_batch([(None, b"n")], codec=Codec.GZIP)), b"this is not gzip")
    with RawConnection(broker.bootstrap) as connection:
        for batch in ([b"n"], broken, [b"n"]):
            error, _ = produce(connection, topic, batch)
            assert error == 0


def test_a_damaged_batch_is_left_out_of_a_search_and_told(broker: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> list[SearchStep]:
        await admin.topics.create("damaged")
        await asyncio.to_thread(damaged, "damaged", broker)
        steps = search(admin.cluster, [Span("damaged", 0, 0, 3)], Wanted(SearchPlace.value, "n"), RecordReader(None))
        return [step async for step in steps]

    steps = run(broker, work)
    assert [each.offset for step in steps for each in step.found] == [0, 2]
    assert (steps[-1].unreadable, steps[-1].failure, steps[-1].is_over) == (1, "", True)


def test_a_damaged_batch_ends_a_page_with_a_problem(broker: EmbeddedBroker) -> None:
    async def work(admin: Admin) -> RecordPage:
        await admin.topics.create("damaged-page")
        await asyncio.to_thread(damaged, "damaged-page", broker)
        bounds = await bounds_of(admin, "damaged-page")
        return await read_page(admin.cluster, "damaged-page", {0: 0}, bounds, forward=True, count=10)

    assert "a batch cannot be read: INVALID_RECORD: Failed to decompress" in run(broker, work).problems[0]


def test_what_is_nested_too_deeply_is_told(broker: EmbeddedBroker) -> None:
    """A condition that recurses where the value was just not too deep for reading it as JSON."""

    def too_deep(_: object) -> bool:
        raise RecursionError

    last = searched_by(broker, "deep", too_deep)[-1]
    assert (last.unreadable, last.looked_at, last.is_over) == (1, 1, True)


def test_a_defect_ends_a_search(broker: EmbeddedBroker) -> None:
    """It is no property of the records: who searches must not be told that there is nothing."""

    def defective(_: object) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        searched_by(broker, "defect", defective)


def searched_by(broker: EmbeddedBroker, topic: str, holds: Callable[[object], bool]) -> list[SearchStep]:
    """Search one record by a condition."""

    async def work(admin: Admin) -> list[SearchStep]:
        await fill(admin, topic, 1, 1)
        wanted = Wanted(SearchPlace.path, condition=JsonCondition((), holds))
        return [step async for step in search(admin.cluster, [Span(topic, 0, 0, 1)], wanted, RecordReader(None))]

    return run(broker, work)
