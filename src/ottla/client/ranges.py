"""Reading partitions without a group: from an offset or a time, up to an end or for ever.

Rules:
- One Fetch per broker carries all partitions that it leads, so that a hundred idle partitions cost one long poll. The
  next Fetch is under way while the records of the last one are handed out.
- Batches arrive whole: records before the wanted start and from the wanted end on are dropped here.
- Control batches are skipped, and with `read_committed` so are those of aborted transactions.
- Every batch is checked against its CRC unless told otherwise.
- An offset that the log no longer has (or does not have yet) is `OffsetOutOfRange`, never a silent jump.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from ottla.client.cluster import Cluster, Purpose
from ottla.client.errors import ClientError, OffsetOutOfRange, UnsupportedApi, check
from ottla.client.offsets import EARLIEST, LATEST, Time, list_offsets, resolve
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.records import batch as batches_of
from ottla.records.batch import BatchHeader
from ottla.records.control import read_marker
from ottla.records.record import Headers, records
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

_BY_ID_SINCE = 13  # Fetch names topics by id from this version on
_PartitionAnswer = FetchResponse.FetchableTopicResponse.PartitionData


class Span(NamedTuple):
    """Part of one partition: [start, end). An end of None means: follow the partition for ever.

    A `Time` is turned into an offset when reading begins; so `end=LATEST` is the end as it is then.
    """

    topic: str
    partition: int
    start: int | Time = EARLIEST
    end: int | Time | None = LATEST


class RawBatch(NamedTuple):
    """One batch as it came from the broker, and the part of it that was asked for."""

    partition: TopicPartition
    header: BatchHeader
    data: memoryview
    start: int
    end: int | None


class ConsumedRecord(NamedTuple):
    """A record and where it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to fetch; Kafka's names and defaults, units last."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 * limits.MIB
    max_partition_bytes: int = limits.MIB
    read_committed: bool = False
    check_crc: bool = True


class _Cursor:
    """How far one span has been read."""

    __slots__ = ("end", "partition", "position", "retries")

    def __init__(self, partition: TopicPartition, start: int, end: int | None) -> None:
        self.partition = partition
        self.position = start
        self.end = end
        self.retries = 0

    @property
    def done(self) -> bool:
        return self.end is not None and self.position >= self.end


class RangeReader:
    """Reads spans: `async with RangeReader(cluster, [Span("topic", 0)]) as reader: async for record in reader: ...`."""

    def __init__(self, cluster: Cluster, spans: Iterable[Span], options: ReadOptions | None = None) -> None:
        self._cluster = cluster
        self._spans = list(spans)
        self.options = options or ReadOptions()
        self._cursors: dict[TopicPartition, _Cursor] | None = None
        self._fetches: dict[asyncio.Task[list[RawBatch]], int] = {}  # task -> node it asks

    async def __aenter__(self) -> "RangeReader":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop fetching."""
        tasks = list(self._fetches)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to be fetched per partition (what was fetched may not have been handed out yet)."""
        return {partition: cursor.position for partition, cursor in (self._cursors or {}).items()}

    def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        return self.records()

    async def records(self) -> AsyncGenerator[ConsumedRecord, None]:
        """The records of all spans; in order within a partition."""
        async with aclosing(self.batches()) as batches:
            async for raw in batches:
                for record in decode_batch(raw):
                    yield record

    async def batches(self) -> AsyncGenerator[RawBatch, None]:
        """The batches of all spans, undecoded; the first and the last may reach beyond the span."""
        await self._open()
        ready: deque[RawBatch] = deque()
        try:
            while True:
                await self._start_fetches()
                if not self._fetches:
                    return
                done, _ = await asyncio.wait(self._fetches, return_when=asyncio.FIRST_COMPLETED)
                for task in [each for each in self._fetches if each in done]:
                    del self._fetches[task]
                    ready.extend(task.result())
                if ready:
                    await self._start_fetches()  # the broker works while the caller does
                while ready:
                    yield ready.popleft()
        finally:
            await self.close()

    async def _open(self) -> None:
        """Turn times into offsets, once."""
        if self._cursors is not None:
            return
        wanted = [(TopicPartition(each.topic, each.partition), each.start, each.end) for each in self._spans]
        starts = await resolve(self._cluster, [(partition, start) for partition, start, _ in wanted])
        ends = await resolve(
            self._cluster,
            [(partition, end) for partition, _, end in wanted if end is not None],
            read_committed=self.options.read_committed,
        )
        self._cursors = {
            partition: _Cursor(partition, starts[partition], ends.get(partition)) for partition, _, _ in wanted
        }
        for partition, _, end in wanted:
            cursor = self._cursors[partition]
            if end == LATEST and cursor.end is not None and cursor.position > cursor.end:
                raise await self._out_of_range(cursor)

    # --- fetching -----------------------------------------------------------------------------------------------

    async def _start_fetches(self) -> None:
        """See that every broker with unfinished partitions has one Fetch under way."""
        assert self._cursors is not None
        by_leader: dict[int, list[_Cursor]] = {}
        for cursor in self._cursors.values():
            if not cursor.done:
                node_id = await self._leader_of(cursor)
                by_leader.setdefault(node_id, []).append(cursor)
        busy = list(self._fetches.values())
        for node_id, cursors in by_leader.items():
            if node_id not in busy:
                self._fetches[asyncio.create_task(self._fetch(node_id, cursors))] = node_id

    async def _leader_of(self, cursor: _Cursor) -> int:
        async def ask() -> int:
            node_id, _ = await self._cluster.leader(cursor.partition)
            return node_id

        return await self._cluster.retry(ask)

    async def _fetch(self, node_id: int, cursors: list[_Cursor]) -> list[RawBatch]:
        """One round trip; errors that pass are waited out here and give an empty result."""
        try:
            answer, names = await self._exchange(node_id, cursors)
            check(answer.error_code)
        except (ClientError, ApiError) as error:
            if isinstance(error, UnsupportedApi) or (isinstance(error, ApiError) and not error.code.retriable):
                raise
            await self._back_off(cursors, error)
            return []
        by_partition = {cursor.partition: cursor for cursor in cursors}
        result: list[RawBatch] = []
        failed: list[_Cursor] = []
        failure: ApiError | None = None
        for topic in answer.responses:
            for partition in topic.partitions:
                name = names.get(topic.topic_id, topic.topic)
                cursor = by_partition.get(TopicPartition(name, partition.partition_index))
                if cursor is None:
                    continue
                try:
                    result.extend(self._take(cursor, partition))
                    cursor.retries = 0
                except ApiError as error:
                    if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        raise await self._out_of_range(cursor) from None
                    if not error.code.retriable or error.code == ErrorCode.CORRUPT_MESSAGE:
                        raise
                    failed.append(cursor)
                    failure = error
        if failure is not None:
            await self._back_off(failed, failure)
        return result

    async def _exchange(self, node_id: int, cursors: list[_Cursor]) -> tuple[FetchResponse, dict[bytes, str]]:
        options = self.options
        topics: dict[str, FetchRequest.Topic] = {}
        ids: dict[bytes, str] = {}
        for cursor in cursors:
            name, index = cursor.partition
            topic = topics.get(name)
            if topic is None:
                topic_id = (await self._cluster.topic(name)).topic_id
                topic = topics[name] = FetchRequest.Topic(topic=name, topic_id=topic_id, partitions=[])
                ids[topic_id] = name
            topic.partitions.append(
                FetchRequest.Topic.Partition(
                    partition=index,
                    fetch_offset=cursor.position,
                    partition_max_bytes=options.max_partition_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            isolation_level=1 if options.read_committed else 0,
            topics=list(topics.values()),
        )
        connection = await self._cluster.connection(node_id, Purpose.FETCH)
        version = connection.version_of(FetchRequest, at_most=_BY_ID_SINCE - 1 if NO_ID in ids else None)
        timeout_ms = options.max_wait_ms + self._cluster.options.request_timeout_ms
        answer = await connection.request(request, FetchResponse, version=version, timeout_ms=timeout_ms)
        return answer, ids if version >= _BY_ID_SINCE else {}

    async def _back_off(self, cursors: list[_Cursor], error: Exception) -> None:
        """Forget what may be out of date and wait; give up when that has not helped for the whole API timeout."""
        options = self._cluster.options
        for cursor in cursors:
            self._cluster.metadata.forget(cursor.partition.topic)
            cursor.retries += 1
        tries = max(cursor.retries for cursor in cursors)
        if tries * options.retry_backoff_max_ms > options.api_timeout_ms:
            raise error
        await asyncio.sleep(options.backoff_ms(tries) / 1000)

    async def _out_of_range(self, cursor: _Cursor) -> OffsetOutOfRange:
        partition = cursor.partition
        start = await list_offsets(self._cluster, {partition: EARLIEST})
        end = await list_offsets(self._cluster, {partition: LATEST})
        return OffsetOutOfRange(partition, cursor.position, start[partition].offset, end[partition].offset)

    # --- batches of one answer ----------------------------------------------------------------------------------

    def _take(self, cursor: _Cursor, answer: _PartitionAnswer) -> list[RawBatch]:
        """The wanted batches of one partition's answer; moves the cursor behind them."""
        check(answer.error_code)
        if not answer.records:
            return []
        view = memoryview(answer.records)
        asked_at = cursor.position
        filtered = _AbortedFilter(answer) if self.options.read_committed else None
        taken = []
        for position, header in batches_of.headers(view):
            if cursor.done:
                break
            if header.next_offset <= cursor.position:
                continue
            data = view[position : position + header.size_bytes]
            if self.options.check_crc:
                batches_of.check(data, 0, header)
            aborted = filtered is not None and filtered.is_aborted(header, data)
            if not header.is_control and not aborted:
                taken.append(RawBatch(cursor.partition, header, data, cursor.position, cursor.end))
            cursor.position = header.next_offset
        if cursor.position == asked_at:
            # A broker sends at least one whole batch from the asked offset on; anything else would loop for ever.
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE, f"no whole batch came for offset {asked_at} of {cursor.partition}"
            )
        return taken


class _AbortedFilter:
    """Which batches of one answer belong to aborted transactions; batches must be shown to it in order."""

    def __init__(self, answer: _PartitionAnswer) -> None:
        # Last first, so that the next one to begin is popped from the end.
        self._to_begin = sorted(answer.aborted_transactions or [], key=lambda each: -each.first_offset)
        self._begun: dict[int, None] = {}

    def is_aborted(self, header: BatchHeader, data: memoryview) -> bool:
        while self._to_begin and self._to_begin[-1].first_offset <= header.last_offset:
            self._begun[self._to_begin.pop().producer_id] = None
        if header.is_control:
            marker = read_marker(data)
            if marker is not None and not marker.commit:
                self._begun.pop(header.producer_id, None)
            return False
        return header.is_transactional and header.producer_id in self._begun


def decode_batch(raw: RawBatch) -> Iterator[ConsumedRecord]:
    """The records of a fetched batch that lie in the wanted range."""
    topic, partition = raw.partition
    leader_epoch = raw.header.leader_epoch
    for offset, timestamp, key, value, headers in records(raw.data):
        if offset < raw.start:
            continue
        if raw.end is not None and offset >= raw.end:
            return
        yield ConsumedRecord(topic, partition, offset, timestamp, key, value, headers, leader_epoch)
