"""Reading ranges: exactly [start, end), whatever the batches are, and clear errors where that is impossible."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.partitions import ScriptedPartitions
from tests.client.scripted import ScriptedBroker, api_versions
from tests.support.waiting import WAIT_S

from ottla.client.cluster import Cluster
from ottla.client.consumer.offsets import EARLIEST, LATEST, Time
from ottla.client.consumer.ranges import RangeReader, ReadOptions, Span
from ottla.client.errors import ClientError, OffsetOutOfRange
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.records.record import Record
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

Test = Callable[[ScriptedPartitions, Cluster, ScriptedBroker], Awaitable[None]]


def with_cluster(test: Test, partitions: int = 1, api_timeout_ms: int = 100) -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker, partitions)
            options = ClientOptions(
                parse_bootstrap(broker.bootstrap),
                retry_backoff_ms=1,
                retry_backoff_max_ms=2,
                api_timeout_ms=api_timeout_ms,
                rng=random.Random(1),
            )
            async with Cluster(options) as cluster:
                await test(logs, cluster, broker)

    asyncio.run(run())


def fill(logs: ScriptedPartitions, sizes: list[int], codec: Codec = Codec.NONE, partition: int = 0) -> None:
    """Batches of so many records; offset n has timestamp 1000 + n and value `n`."""
    for size in sizes:
        first = logs.ends[partition]
        records = [Record(-1, 1000 + n, b"k", b"%d" % n) for n in range(first, first + size)]
        logs.append(partition, bytes(build_batch(records, codec=codec)))


async def offsets(cluster: Cluster, span: Span, options: ReadOptions | None = None) -> list[int]:
    async with RangeReader(cluster, [span], options) as reader:
        return [record.offset async for record in reader]


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_exactly_the_range(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    total = sum(sizes)
    start = data.draw(st.integers(0, total))
    end = data.draw(st.integers(start, total))
    codec = data.draw(st.sampled_from(list(Codec)))

    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, sizes, codec)
        assert await offsets(cluster, Span("t", 0, start, end)) == list(range(start, end))

    with_cluster(test)


def test_two_spans_of_one_partition_are_refused() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        with pytest.raises(ValueError, match="one span of a partition, not two of t-0"):
            RangeReader(cluster, [Span("t", 0, 0, 10), Span("t", 1), Span("t", 0, 50, 60)])

    with_cluster(test)


def test_places_by_time() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [5, 5])
        logs.starts[0] = 2
        assert await offsets(cluster, Span("t", 0, EARLIEST, LATEST)) == list(range(2, 10))
        assert await offsets(cluster, Span("t", 0, Time(1007), LATEST)) == [7, 8, 9]
        assert await offsets(cluster, Span("t", 0, EARLIEST, Time(1004))) == [2, 3]
        assert await offsets(cluster, Span("t", 0, Time(9999), LATEST)) == []

    with_cluster(test)


@pytest.mark.parametrize("fetch_version", [4, 11, 12, 13, 18])
def test_fetch_versions(fetch_version: int) -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        broker.answers[ApiVersionsRequest] = api_versions({1: (4, fetch_version)})
        fill(logs, [3])
        assert await offsets(cluster, Span("t", 0)) == [0, 1, 2]
        assert {version for version, each in broker.requests if isinstance(each, FetchRequest)} == {fetch_version}

    with_cluster(test)


def test_small_fetches_get_through_and_a_cut_batch_is_fetched_again() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [3, 3, 3])
        found = await offsets(cluster, Span("t", 0), ReadOptions(max_partition_bytes=150))
        assert found == list(range(9))
        assert len(broker.of(FetchRequest)) >= 3

    with_cluster(test)


def test_a_broker_that_sends_less_than_a_batch_is_an_error() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [30])
        with pytest.raises(ApiError, match="no whole batch came for offset 0 of t-0"):
            await offsets(cluster, Span("t", 0), ReadOptions(max_partition_bytes=100))

    with_cluster(test)


def test_many_partitions_share_one_fetch() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        for index in range(20):
            fill(logs, [2, 2], partition=index)
        async with RangeReader(cluster, [Span("t", index) for index in range(20)]) as reader:
            found = [(record.partition, record.offset) async for record in reader]
        assert sorted(found) == [(index, offset) for index in range(20) for offset in range(4)]
        assert len(broker.of(FetchRequest)) == 1

    with_cluster(test, partitions=20)


def test_following() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [2])
        async with RangeReader(cluster, [Span("t", 0, LATEST, None)]) as reader:
            records = reader.records()
            waiting = asyncio.ensure_future(anext(records))
            await asyncio.sleep(0.01)
            assert not waiting.done()
            fill(logs, [2])
            assert (await waiting).offset == 2
            assert (await anext(records)).offset == 3
            await records.aclose()

    with_cluster(test)


def test_out_of_range() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [10])
        logs.starts[0] = 4
        with pytest.raises(OffsetOutOfRange, match="offset 2 of t-0 is gone: the log now starts at 4"):
            await offsets(cluster, Span("t", 0, 2))
        with pytest.raises(OffsetOutOfRange, match="offset 11 of t-0 does not exist yet: the log ends at 10") as caught:
            await offsets(cluster, Span("t", 0, 11, 20))
        with pytest.raises(OffsetOutOfRange, match="does not exist yet"):
            await offsets(cluster, Span("t", 0, 11))
        assert await offsets(cluster, Span("t", 0, 10)) == []
        assert (caught.value.start_offset, caught.value.end_offset) == (4, 10)

    with_cluster(test)


def test_a_flipped_bit_is_found() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [3])
        logs.logs[0][-1] ^= 1
        with pytest.raises(ApiError, match="CORRUPT_MESSAGE"):
            await offsets(cluster, Span("t", 0))

    with_cluster(test)


def test_errors_that_pass_are_waited_out_and_others_raise() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [3])
        codes = [6, 6, 74]  # NOT_LEADER_OR_FOLLOWER twice, FENCED_LEADER_EPOCH
        whole = broker.answers[FetchRequest]

        def failing(request: FetchRequest, version: int) -> FetchResponse:
            answer = whole(request, version)
            if codes:
                answer.responses[0].partitions[0].error_code = codes.pop(0)
                answer.responses[0].partitions[0].records = None
            return answer

        broker.answers[FetchRequest] = failing
        assert await offsets(cluster, Span("t", 0)) == [0, 1, 2]
        codes.append(29)
        with pytest.raises(ApiError, match="TOPIC_AUTHORIZATION_FAILED"):
            await offsets(cluster, Span("t", 0))
        codes.extend([6] * 1000)
        with pytest.raises(ApiError, match="NOT_LEADER"):
            await offsets(cluster, Span("t", 0))

    with_cluster(test)


def test_a_lost_connection_is_made_again() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [2, 2])
        async with RangeReader(cluster, [Span("t", 0, 0, 4)], ReadOptions(max_partition_bytes=100)) as reader:
            records = reader.records()
            found = [(await anext(records)).offset]
            broker.drop()
            found += [record.offset async for record in records]
        assert found == [0, 1, 2, 3]

    with_cluster(test)


def test_read_committed_leaves_out_aborted_and_control_records() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        def transactional(producer: int, value: bytes) -> None:
            records = [Record(-1, 1, None, value)]
            batch = build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
            raw(batch)

        def end(producer: int, commit: bool) -> None:
            raw(end_txn_batch(EndTxnMarker(commit, 0), producer_id=producer, producer_epoch=0, timestamp=1))

        def raw(batch: bytearray) -> None:
            batch[:8] = logs.ends[0].to_bytes(8, "big")
            logs.logs[0] += batch
            logs.ends[0] += 1

        transactional(1, b"aborted")  # 0
        transactional(2, b"committed")  # 1
        raw(build_batch([Record(-1, 1, None, b"plain")]))  # 2
        end(1, commit=False)  # 3
        end(2, commit=True)  # 4
        transactional(1, b"again")  # 5
        end(1, commit=True)  # 6

        whole = broker.answers[FetchRequest]

        def with_aborted(request: FetchRequest, version: int) -> FetchResponse:
            answer = whole(request, version)
            if request.isolation_level:
                partition = answer.responses[0].partitions[0]
                partition.aborted_transactions = [partition.AbortedTransaction(producer_id=1, first_offset=0)]
            return answer

        broker.answers[FetchRequest] = with_aborted
        assert await offsets(cluster, Span("t", 0), ReadOptions(read_committed=True)) == [1, 2, 5]
        assert await offsets(cluster, Span("t", 0)) == [0, 1, 2, 5]

    with_cluster(test)


def test_unknown_topic_and_partition() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        with pytest.raises(ApiError, match="there is no topic 'nope'"):
            await offsets(cluster, Span("nope", 0))
        with pytest.raises(ApiError, match="there is no 7"):
            await offsets(cluster, Span("t", 7))

    with_cluster(test)


PATIENT_MS = 3_600_000


@pytest.mark.parametrize("span", [Span("t", 7), Span("t", 7, 0, 5), Span("t", 7, EARLIEST, 5), Span("t", 7, 0, None)])
def test_a_partition_that_does_not_exist_is_refused_at_once(span: Span) -> None:
    """It used to be looked for until the patience for brokers that are away was over, twice."""

    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(ApiError, match="topic 't' has 1 partitions, there is no 7"):
                await offsets(cluster, span)

    with_cluster(test, api_timeout_ms=PATIENT_MS)


def test_an_end_beyond_the_log_is_refused_behind_what_is_there() -> None:
    """It used to be waited for, without a word."""

    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [6, 4])
        async with asyncio.timeout(WAIT_S), RangeReader(cluster, [Span("t", 0, 3, 10**9)]) as reader:
            records = aiter(reader)
            assert [(await anext(records)).offset for _ in range(7)] == list(range(3, 10))
            with pytest.raises(OffsetOutOfRange, match=r"offset 1000000000 of t-0 does not .* yet: the log ends at 10"):
                await anext(records)
        assert reader.positions() == {TopicPartition("t", 0): 10}

    with_cluster(test, api_timeout_ms=PATIENT_MS)


def test_a_leader_that_does_not_know_yet_how_far_the_log_is_committed_is_asked() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        fill(logs, [5])
        logs.append(0, bytes(build_batch([Record(-1, 1, None, b"later")])))
        behind = [5, 5]

        def lagging(request: FetchRequest, version: int) -> FetchResponse:
            answer = logs.fetch(request, version)
            part = answer.responses[0].partitions[0]
            if behind:
                part.high_watermark, part.records = behind.pop(), b""
            return answer

        broker.answers[FetchRequest] = lagging
        async with asyncio.timeout(WAIT_S):
            assert await offsets(cluster, Span("t", 0, 5, 6)) == [5]
        assert not behind

    with_cluster(test)


def test_a_reader_takes_an_address() -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker, 1)
            fill(logs, [2, 3])
            async with RangeReader(broker.bootstrap, [Span("t", 0)]) as reader:
                assert [record.offset async for record in reader] == list(range(5))
                fill(logs, [1])
                assert [record.offset async for record in reader] == []  # on the same connections, from where it was
            with pytest.raises(ClientError, match="closed"):
                await reader._cluster.any_connection()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("span", "why"),
    [
        (Span("t", 0, 5, 2), "starts at 5, behind its end 2"),
        (Span("t", -1), "numbered from 0: there is no -1"),
        (Span("t", 0, -3), "start must be an offset, 0 or more, not -3: EARLIEST and LATEST"),
        (Span("t", 0, "yesterday"), "start must be an offset or a Time .* not str"),  # type: ignore[arg-type]
        (Span("t", 0, 0, 1.5), "end must be an offset or a Time .* not float"),  # type: ignore[arg-type]
        (Span("t", 0, None), "start must be an offset or a Time .* not None"),  # type: ignore[arg-type]
        (Span(None, 0), "the name of a topic and a number, not None and 0"),  # type: ignore[arg-type]
        ("t", "a list of Span, not of str"),
    ],
)
def test_what_is_no_span(span: Span, why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        RangeReader("127.0.0.1:9", [span])
