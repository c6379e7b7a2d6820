"""Deliver, then advance: whatever fails beside the records, each partition's come in order, without a gap, and no
committed position is behind what was handed out. And every partition is read by itself."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.memory_cluster import (
    HANG_UP,
    LEAVE_OUT,
    SAY_NOTHING,
    MemoryClient,
    What,
    run,
)
from tests.client.memory_reading import BAD, GOOD, always, brokers_with, options, places, read

from ottla import Consumer, RangeReader, Span, TopicPartition
from ottla.client.consumer.fetching import ConsumerFetcher, FetchCursor, ReadOptions
from ottla.client.consumer.group_offsets import GroupOffsets
from ottla.client.consumer.offsets import EARLIEST
from ottla.client.errors import NoOffset, OffsetOutOfRange
from ottla.model.errors import ApiError, ErrorCode
from ottla.wire.message import Request
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

FAULTS: list[What] = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    HANG_UP,
    SAY_NOTHING,
    LEAVE_OUT,
]


@pytest.mark.parametrize("what", FAULTS, ids=str)
def test_a_lookup_that_fails_takes_no_other_partition_with_it(what: What) -> None:
    """Defect: one answer has good records, and a partition whose position is gone; looking up what is there fails."""

    async def test() -> None:
        brokers = brokers_with(good=100, bad=10)
        brokers.log(BAD).start = 5
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            always(brokers, ListOffsetsRequest, what, BAD)
            consumer.assign([GOOD, BAD])
            consumer.seek(GOOD, 0)
            consumer.seek(BAD, 1)
            assert await read(consumer, 100) == places(GOOD, 100)
            assert consumer.position(GOOD) == 100
            brokers.fault = lambda request: None
            assert await read(consumer, 5) == [(BAD, offset) for offset in range(5, 10)]
            await consumer.commit()
        assert brokers.committed == {GOOD: 100, BAD: 10}

    run(test)


def test_a_topic_that_is_deleted_takes_no_other_with_it() -> None:
    async def test() -> None:
        brokers = brokers_with(good=50, bad=10)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options(max_poll_records=5)) as consumer:
            consumer.assign([BAD, GOOD])
            seen = await read(consumer, 20)
            del brokers.topics["bad"]
            seen += await read(consumer, 40)
            assert [each for each in seen if each[0] == GOOD] == places(GOOD, 50)
            brokers.log(GOOD).append(5)
            assert await read(consumer, 5) == places(GOOD, 55)[50:]
            with pytest.raises(ApiError, match="bad-0"):
                await consumer.commit()
            assert brokers.committed == {GOOD: 55}, "what could be stored was"
            outcomes = await consumer.each.commit()
            assert ([*outcomes.found], [*outcomes.failed]) == ([GOOD], [BAD])

    run(test)


# --- each partition finds its own position


@pytest.mark.parametrize("group", ["g", None])
def test_a_missing_topic_is_waited_for_while_the_others_are_read(group: str | None) -> None:
    async def test() -> None:
        brokers = brokers_with(good=20)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options(group_id=group)) as consumer:
            consumer.assign([BAD, GOOD])
            assert await read(consumer, 20) == places(GOOD, 20)
            assert "there is no topic 'bad'" in str(consumer.failures()[BAD])
            assert [*consumer.failures()] == [BAD]
            brokers.make("bad", 1)
            brokers.log(BAD).append(3)
            assert await read(consumer, 3) == places(BAD, 3)
            assert consumer.failures() == {}

    run(test)


def test_nobody_looks_for_what_is_no_longer_wanted() -> None:
    async def test() -> None:
        brokers = brokers_with(good=20)
        asked: list[str] = []

        def note(request: Request) -> None:
            if isinstance(request, MetadataRequest):
                asked.extend(each.name or "" for each in request.topics or ())

        brokers.fault = note  # type: ignore[assignment]
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            consumer.assign([BAD])
            for offset in range(5):
                await consumer.poll(timeout_ms=5_000)
                consumer.seek(BAD, offset)
            searched = asked.count("bad")
            assert searched > 5
            consumer.assign([GOOD])
            await asyncio.sleep(2)
            asked.clear()
            assert await read(consumer, 20) == places(GOOD, 20)
            await asyncio.sleep(60)
            assert "bad" not in asked

    run(test)


@pytest.mark.parametrize("api", [MetadataRequest, ListOffsetsRequest, OffsetFetchRequest, FetchRequest])
@pytest.mark.parametrize("what", [*FAULTS, ErrorCode.UNSTABLE_OFFSET_COMMIT], ids=str)
def test_one_partition_in_trouble_holds_up_no_other(api: type[Request], what: What) -> None:
    async def test() -> None:
        brokers = brokers_with(good=20, bad=10)
        brokers.log(BAD).leader = 2
        # A request that is lost, or hangs, concerns all its partitions: here that of one broker.
        whole = what in (HANG_UP, SAY_NOTHING)

        def fault(request: Any) -> tuple[What, Callable[[TopicPartition], bool]] | None:
            names = [each.topic if isinstance(request, FetchRequest) else "" for each in getattr(request, "topics", ())]
            ids = [getattr(each, "topic_id", b"") for each in getattr(request, "topics", ())]
            of_bad = "bad" in names or brokers.topics["bad"].id in ids or isinstance(request, ListOffsetsRequest)
            hit = isinstance(request, api) and (not whole or (of_bad and api in (FetchRequest, ListOffsetsRequest)))
            if hit and isinstance(request, ListOffsetsRequest) and whole:
                hit = [topic.name for topic in request.topics] == ["bad"]
            return (what, BAD.__eq__) if hit else None

        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            brokers.fault = fault
            consumer.assign([BAD, GOOD])
            found = await read(consumer, 20)
            assert [each for each in found if each[0] == GOOD] == places(GOOD, 20)
            brokers.fault = lambda request: None
            found += await read(consumer, 30 - len(found))
            assert [each for each in found if each[0] == BAD] == places(BAD, 10)

    run(test)


def test_what_does_not_pass_is_raised_after_what_is_good() -> None:
    async def test() -> None:
        brokers = brokers_with(good=20, bad=10)
        no_reset = options(auto_offset_reset="none")
        async with MemoryClient(brokers) as cluster, Consumer(cluster, no_reset) as consumer:
            consumer.assign([BAD, GOOD])
            consumer.seek(GOOD, 0)
            assert sum(map(len, (await consumer.poll(timeout_ms=60_000)).values())) == 20
            with pytest.raises(NoOffset, match="bad-0"):
                await consumer.poll(timeout_ms=60_000)
            consumer.seek(BAD, 77)
            with pytest.raises(OffsetOutOfRange, match="offset 77 of bad-0"):
                await consumer.poll(timeout_ms=60_000)
            consumer.seek(BAD, 7)
            assert await read(consumer, 3) == [(BAD, 7), (BAD, 8), (BAD, 9)]

    run(test)


def test_what_passes_is_not_raised_with_what_does_not() -> None:
    """Defect: the caller heard of an offset that is about to be decided, instead of the one that nobody may choose."""

    async def test() -> None:
        brokers = brokers_with(good=20, bad=10)
        no_reset = options(auto_offset_reset="none")
        async with MemoryClient(brokers) as cluster, Consumer(cluster, no_reset) as consumer:
            always(brokers, OffsetFetchRequest, ErrorCode.UNSTABLE_OFFSET_COMMIT, GOOD)
            consumer.assign([GOOD, BAD])
            for _ in range(3):
                with pytest.raises(NoOffset, match="bad-0") as told:
                    await consumer.poll(timeout_ms=60_000)
                assert "other" not in str(told.value)
            assert str(ErrorCode.UNSTABLE_OFFSET_COMMIT.name) in str(consumer.failures()[GOOD])

    run(test)


def test_a_defect_in_looking_for_positions_is_told_and_they_are_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        brokers = brokers_with(good=20)
        asked = GroupOffsets.fetch_with_ids
        defects = [KeyError("a defect")]

        async def fetch_with_ids(self: GroupOffsets, partitions: Any) -> Any:
            found = await asked(self, partitions)
            if defects:
                raise defects.pop()
            return found

        monkeypatch.setattr(GroupOffsets, "fetch_with_ids", fetch_with_ids)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            consumer.assign([GOOD])
            with pytest.raises(KeyError, match="a defect"):
                await consumer.poll(timeout_ms=60_000)
            assert await read(consumer, 20) == places(GOOD, 20)

    run(test)


def test_a_topic_that_goes_while_its_offsets_are_asked_for_is_no_defect() -> None:
    """A Metadata answer may come between the decision whom to ask and the question."""

    async def test() -> None:
        brokers = brokers_with(good=20)
        async with MemoryClient(brokers) as cluster:
            await cluster.refresh(["good"])
            fetcher = ConsumerFetcher(cluster, ReadOptions())
            fetcher.start([FetchCursor(GOOD, EARLIEST)])
            cluster.metadata.deleted("good")
            await fetcher.wait()
            (found,) = fetcher.collect()
            assert (found.error, found.next_offset, found.cursor.topic_id) == (None, 0, brokers.topics["good"].id)
            await fetcher.close()

    run(test)


def test_an_unanswered_offset_is_no_missing_offset() -> None:
    """Whoever took it for one would go to where the options say, and skip what was committed."""

    async def test() -> None:
        brokers = brokers_with(good=20, bad=10)
        brokers.committed = {GOOD: 5, BAD: 5}
        async with MemoryClient(brokers) as cluster:
            for what in (LEAVE_OUT, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNSTABLE_OFFSET_COMMIT):
                async with Consumer(cluster, options(auto_offset_reset="latest", enable_auto_commit=False)) as consumer:
                    always(brokers, OffsetFetchRequest, what, BAD)
                    consumer.assign([BAD, GOOD])
                    assert await read(consumer, 15) == places(GOOD, 20)[5:]
                    brokers.fault = lambda request: None
                    assert await read(consumer, 5) == places(BAD, 10)[5:]

    run(test)


@pytest.mark.parametrize("code", [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.GROUP_AUTHORIZATION_FAILED])
def test_a_commit_counts_where_it_was_stored(code: ErrorCode) -> None:
    async def test() -> None:
        brokers = brokers_with(good=20, bad=10)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            consumer.assign([BAD, GOOD])
            await read(consumer, 30)
            always(brokers, OffsetCommitRequest, code, BAD)
            outcomes = await consumer.each.commit()
            assert {each: at.offset for each, at in outcomes.found.items()} == {GOOD: 20} == brokers.committed
            with pytest.raises(ApiError, match="bad-0") as told:
                await consumer.commit()
            assert told.value.code == code

    run(test)


def test_questions_have_an_outcome_per_partition() -> None:
    async def test() -> None:
        brokers = brokers_with(good=20)
        brokers.committed = {GOOD: 3}
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            ends, starts = await consumer.each.end_offsets([BAD, GOOD]), await consumer.each.beginning_offsets([GOOD])
            assert (ends.found, [*ends.failed], starts.found) == ({GOOD: 20}, [BAD], {GOOD: 0})
            with pytest.raises(ApiError, match="bad-0: there is no topic 'bad'"):
                await consumer.end_offsets([BAD, GOOD])
            times = await consumer.each.offsets_for_times({BAD: 0, GOOD: 0})
            assert ([*times.found], [*times.failed]) == ([GOOD], [BAD])
            committed = await consumer.each.committed([BAD, GOOD])
            assert {each: at and at.offset for each, at in committed.found.items()} == {BAD: None, GOOD: 3}

    run(test)


@pytest.mark.parametrize("operation", ["seek_to_beginning", "seek_to_end", "pause", "resume"])
def test_a_partition_that_is_not_assigned_is_refused_before_any_is_changed(operation: str) -> None:
    """Defect: the partitions named before it were changed already."""

    async def test() -> None:
        brokers = brokers_with(good=20, bad=10)
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options(max_poll_records=5)) as consumer:
            consumer.assign([GOOD])
            seen = await read(consumer, 5)
            if operation == "resume":
                consumer.pause(GOOD)
            before = (consumer.position(GOOD), consumer.paused())
            with pytest.raises(ValueError, match="bad-0 is not assigned to this consumer"):
                getattr(consumer, operation)(GOOD, BAD)
            assert (consumer.position(GOOD), consumer.paused()) == before
            consumer.resume(GOOD)
            assert seen + await read(consumer, 15) == places(GOOD, 20)

    run(test)


def test_one_request_asks_who_leads_all_topics() -> None:
    async def test() -> None:
        brokers = brokers_with(**{f"t{number}": 1 for number in range(300)})
        asked: list[int] = []

        def note(request: Request) -> None:
            if isinstance(request, MetadataRequest):
                asked.append(len(request.topics or ()))

        brokers.fault = note  # type: ignore[assignment]
        everywhere = [*(TopicPartition(name, 0) for name in brokers.topics), BAD]
        async with MemoryClient(brokers) as cluster, Consumer(cluster, options()) as consumer:
            ends = await consumer.each.end_offsets(everywhere)
            assert (ends.found, [*ends.failed]) == (dict.fromkeys(everywhere[:-1], 1), [BAD])
            assert asked.count(301) == 1 and len(asked) <= 2, "the brokers, perhaps, and all topics"

    run(test)


# --- ranges


def test_a_span_that_fails_takes_nothing_from_the_others() -> None:
    async def test() -> None:
        brokers = brokers_with(good=20, bad=10)
        async with MemoryClient(brokers) as cluster:
            spans = [Span("nope", 0), Span("bad", 0, 77, 80), Span("good", 0)]
            reader = RangeReader(cluster, spans)
            seen: list[int] = []

            async def read_all() -> None:
                async for record in reader:
                    seen.append(record.offset)  # noqa: PERF401 - what comes before the failure counts

            for _ in range(2):  # a second time there is nothing left but to fail
                with pytest.raises(ApiError, match=r"nope-0: there is no topic 'nope' \(and 1 other failed\)"):
                    await read_all()
                assert seen == list(range(20))
            assert reader.positions() == {GOOD: 20, BAD: 77}

    run(test)


def test_a_reader_goes_on_behind_what_it_handed_out() -> None:
    async def test() -> None:
        brokers = brokers_with(good=20)
        brokers.log(GOOD).append(20)
        async with MemoryClient(brokers) as cluster, RangeReader(cluster, [Span("good", 0)]) as reader:
            seen: list[int] = []
            while len(seen) < 40:
                records = reader.records()
                for _ in range(7):
                    record = await anext(records, None)
                    if record is not None:
                        seen.append(record.offset)
                        assert reader.positions() == {GOOD: record.offset + 1}
                await records.aclose()
            assert seen == list(range(40))
            assert [record.offset async for record in reader] == []

    run(test)
