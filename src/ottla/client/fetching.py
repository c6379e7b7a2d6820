"""Fetching: one Fetch per broker for whatever is wanted there, checked, filtered, and decoded by the batch.

`RangeReader` and `Consumer` are both built on `Fetcher`; each decides what is wanted and what becomes of it.

Rules:
- One Fetch per broker carries all partitions that it leads, so that a hundred idle partitions cost one long poll.
- A cursor is part of one fetch at a time (`busy`), wherever its partition moves meanwhile.
- Batches arrive whole: a `RawBatch` says which part of it was asked for.
- Control batches are skipped, and with `read_committed` so are those of aborted transactions.
- Every batch is checked against its CRC unless told otherwise.
- What goes wrong with one partition for good comes as its `Fetched.error`; the other partitions of the same answer are
  not touched by it. What passes is waited out: for `api_timeout_ms`, or for ever if the fetcher is `patient`.
- A leader that is gone is looked for at once; one that says who leads now (KIP-951) is believed. A leader may also name
  a replica nearer to us (KIP-392): that one is asked until it fails, or `metadata_max_age_ms` are over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

from ottla.client.cluster import Cluster, Purpose
from ottla.client.errors import ClientError, LogTruncated, UnsupportedApi, check
from ottla.client.links import SILENCE_MS
from ottla.client.metadata import NO_LEADER
from ottla.client.offsets import out_of_range
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.records import batch as batches_of
from ottla.records.batch import NO_LEADER_EPOCH, BatchHeader
from ottla.records.committed import AbortedFilter
from ottla.records.record import Columns, Headers, columns
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

_BY_ID_SINCE = 13  # Fetch names topics by id from this version on
_NOWHERE = -1  # the "broker" of cursors whose leader is being looked for
# From a replica that does not lead, these only mean that the leader knows better.
_OF_FOLLOWERS = (
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
_PartitionAnswer = FetchResponse.FetchableTopicResponse.PartitionData


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


_consumed_record = partial(tuple.__new__, ConsumedRecord)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to fetch; Kafka's names and defaults, units last."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 * limits.MIB
    max_partition_bytes: int = limits.MIB
    read_committed: bool = False
    check_crc: bool = True


class Cursor:
    """How far one partition has been fetched, and up to where it is wanted."""

    __slots__ = (
        "busy",
        "end",
        "failure",
        "last_epoch",
        "partition",
        "position",
        "replica",
        "retries",
        "topic_id",
        "tried",
    )

    def __init__(self, partition: TopicPartition, start: int, end: int | None = None, topic_id: bytes = NO_ID) -> None:
        self.partition = partition
        self.topic_id = topic_id  # if it is known: another topic of that name is not fetched from
        self.position = start
        self.end = end
        self.last_epoch = NO_LEADER_EPOCH  # of the last batch fetched; lets the broker see a truncated log
        self.retries = 0
        self.busy = False
        self.failure: Exception | None = None  # why its leader is to be looked for
        self.tried: tuple[int, int] | None = None  # the leader, and its epoch, of the last attempt
        self.replica: tuple[int, float] | None = None  # a broker to be asked instead of the leader, and until when

    @property
    def done(self) -> bool:
        return self.end is not None and self.position >= self.end


class Fetched(NamedTuple):
    """What one answer brought for one cursor; `next_offset` is behind everything in it, skipped batches included."""

    cursor: Cursor
    batches: list[RawBatch]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    size_bytes: int = 0
    error: ApiError | None = None


class Fetcher:
    """Keeps one Fetch per broker under way for the cursors that its owner names."""

    def __init__(
        self,
        cluster: Cluster,
        options: ReadOptions,
        *,
        patient: bool = False,
        wake: Callable[[object], None] | None = None,
        rack_id: str = "",
    ) -> None:
        self.options = options
        self._cluster = cluster
        self._patient = patient
        self._wake = wake
        self._rack_id = rack_id
        self._tasks: dict[asyncio.Task[list[Fetched]], int] = {}  # task -> node it asks
        self._kept: list[Fetched] = []  # arrived together with a failure

    def __bool__(self) -> bool:
        """Whether anything is under way."""
        return bool(self._tasks)

    async def close(self) -> None:
        """Stop fetching; what was fetched and not collected is dropped."""
        tasks, self._tasks = list(self._tasks), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def start(self, cursors: Iterable[Cursor], *, hurried: bool = False) -> None:
        """See that every broker that leads one of the cursors has a Fetch under way. Hurried ones do not wait for data
        (the owner will want more partitions of the same broker in a moment)."""
        by_leader: dict[int, list[Cursor]] = {}
        for cursor in cursors:
            if not cursor.busy:
                by_leader.setdefault(self._source_of(cursor), []).append(cursor)
        nodes_asked = list(self._tasks.values())
        for node_id, wanted in by_leader.items():
            if node_id == _NOWHERE:
                self._spawn(_NOWHERE, wanted, partial(self._recover, wanted))
            elif node_id not in nodes_asked:
                self._spawn(node_id, wanted, partial(self._fetch, node_id, wanted, hurried))

    async def wait(self, timeout_s: float | None = None) -> None:
        """Until something that is under way has ended, or the time is over."""
        await asyncio.wait(self._tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)

    def collect(self) -> list[Fetched]:
        """What has arrived since the last time; raises what went wrong for good. The cursors are behind what arrived
        beside that, so it is kept for the next time."""
        found, self._kept = self._kept, []
        failure: BaseException | None = None
        for task in [each for each in self._tasks if each.done()]:
            del self._tasks[task]
            error = task.exception()
            if error is None:
                found.extend(task.result())
            failure = failure or error
        if failure is not None:
            self._kept = found
            raise failure
        return found

    def _spawn(self, node_id: int, cursors: list[Cursor], work: Callable[[], Awaitable[list[Fetched]]]) -> None:
        for cursor in cursors:
            cursor.busy = True

        async def run() -> list[Fetched]:
            try:
                return await work()
            finally:
                for cursor in cursors:
                    cursor.busy = False

        task = asyncio.create_task(run())
        self._tasks[task] = node_id
        if self._wake is not None:
            task.add_done_callback(self._wake)

    def _source_of(self, cursor: Cursor) -> int:
        """The broker to ask: the leader, or the replica that it named."""
        if cursor.failure is not None:
            return _NOWHERE
        leader = self._leader_of(cursor.partition)
        if cursor.replica is not None and leader != _NOWHERE:
            node_id, until_s = cursor.replica
            if node_id in self._cluster.metadata.brokers and asyncio.get_running_loop().time() < until_s:
                return node_id
            cursor.replica = None
        return leader

    def _leader_of(self, partition: TopicPartition) -> int:
        topic = self._cluster.fresh_topic(partition.topic)
        info = None if topic is None else topic.partition(partition.partition)
        return info.leader if info is not None and info.leader != NO_LEADER else _NOWHERE

    # --- one round trip -----------------------------------------------------------------------------------------

    async def _fetch(self, node_id: int, cursors: list[Cursor], hurried: bool) -> list[Fetched]:
        """Ask one broker; errors that pass give nothing, but that the leader is looked for."""
        try:
            answer, names = await self._exchange(node_id, cursors, hurried)
            check(answer.error_code)
        except (ClientError, ApiError) as error:
            if isinstance(error, UnsupportedApi) or (isinstance(error, ApiError) and not error.code.retriable):
                raise
            for each in cursors:
                self._failed(each, error)
            return []
        by_partition = {cursor.partition: cursor for cursor in cursors}
        result: list[Fetched] = []
        for topic in answer.responses:
            for partition in topic.partitions:
                name = names.get(topic.topic_id, topic.topic)
                cursor = by_partition.get(TopicPartition(name, partition.partition_index))
                if cursor is None:
                    continue
                try:
                    result.append(self._take(cursor, partition))
                    cursor.retries = 0
                except ApiError as error:
                    try:
                        found = await self._refused(cursor, partition, answer, error)
                    except (ClientError, ApiError) as failure:  # the other partitions' records must not go with it
                        self._failed(cursor, failure)
                        continue
                    if found is not None:
                        result.append(found)
        return result

    async def _refused(
        self, cursor: Cursor, partition: _PartitionAnswer, answer: FetchResponse, error: ApiError
    ) -> Fetched | None:
        """One partition came with an error; None if that passes."""
        if cursor.replica is not None and error.code in _OF_FOLLOWERS:
            cursor.replica = None
            return None
        if error.code.retriable and error.code != ErrorCode.CORRUPT_MESSAGE:
            if not self._cluster.metadata.hint(cursor.partition, partition.current_leader, answer.node_endpoints):
                self._failed(cursor, error)
            return None
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            known = await out_of_range(self._cluster, cursor.partition, cursor.position)
            if known.start_offset <= cursor.position <= known.end_offset:
                # The one that was asked does not lead, and lacks what the leader has: as if it had said so.
                self._failed(cursor, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
                return None
            error = known
        return Fetched(cursor, [], cursor.position, -1, -1, error=error)

    def _failed(self, cursor: Cursor, error: Exception) -> None:
        if cursor.replica is not None:
            cursor.replica = None  # the leader is asked next
        else:
            cursor.failure = error

    async def _exchange(
        self, node_id: int, cursors: list[Cursor], hurried: bool
    ) -> tuple[FetchResponse, dict[bytes, str]]:
        options = self.options
        topics: dict[str, FetchRequest.Topic] = {}
        ids: dict[bytes, str] = {}
        for cursor in cursors:
            name, index = cursor.partition
            info = await self._cluster.topic(name)
            if NO_ID not in (cursor.topic_id, info.topic_id) and cursor.topic_id != info.topic_id:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"topic {name!r} was deleted and created anew")
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchRequest.Topic(topic=name, topic_id=info.topic_id, partitions=[])
                ids[info.topic_id] = name
            place = info.partition(index)
            cursor.tried = None if place is None else (place.leader, place.leader_epoch)
            topic.partitions.append(
                FetchRequest.Topic.Partition(
                    partition=index,
                    current_leader_epoch=NO_LEADER_EPOCH if place is None else place.leader_epoch,
                    fetch_offset=cursor.position,
                    last_fetched_epoch=cursor.last_epoch,
                    partition_max_bytes=options.max_partition_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=0 if hurried else options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=options.max_bytes,
            isolation_level=1 if options.read_committed else 0,
            topics=list(topics.values()),
            rack_id=self._rack_id,
        )
        connection = await self._cluster.connection(node_id, Purpose.FETCH)
        version = connection.version_of(FetchRequest, at_most=_BY_ID_SINCE - 1 if NO_ID in ids else None)
        timeout_ms = options.max_wait_ms + self._cluster.options.request_timeout_ms
        asked = await connection.submit(request, FetchResponse, version=version, timeout_ms=timeout_ms)
        patience_s = (request.max_wait_ms + SILENCE_MS) / 1000
        while not (await asyncio.wait([asked], timeout=patience_s))[0]:
            if await self._others_lead(cursors):
                connection.close()
        return asked.result(), ids if version >= _BY_ID_SINCE else {}

    async def _others_lead(self, cursors: list[Cursor]) -> bool:
        """Whether a broker that gives no answer has lost one of these partitions to another one meanwhile."""
        for topic in dict.fromkeys(cursor.partition.topic for cursor in cursors):
            self._cluster.metadata.mark_stale(topic)
        try:
            leaders = [await self._cluster.leader(cursor.partition) for cursor in cursors]
        except (ClientError, ApiError):
            return False
        return any(leader != cursor.tried for leader, cursor in zip(leaders, cursors, strict=True))

    async def _recover(self, cursors: list[Cursor]) -> list[Fetched]:
        """Look for the leaders: at once, and after a moment once more if that brought nothing new."""
        options = self._cluster.options
        failure = next((cursor.failure for cursor in cursors if cursor.failure is not None), None)
        for cursor in cursors:
            cursor.failure = None
        waited = failure is None
        while True:
            topics = dict.fromkeys(cursor.partition.topic for cursor in cursors)
            if failure is not None:
                for cursor in cursors:
                    cursor.retries += 1
                for topic in topics:
                    self._cluster.metadata.mark_stale(topic)
                tries = max(cursor.retries for cursor in cursors)
                if not self._patient and tries * options.retry_backoff_max_ms > options.api_timeout_ms:
                    raise failure
            try:
                leaders = [await self._cluster.leader(cursor.partition) for cursor in cursors]
                if waited or all(leader != cursor.tried for leader, cursor in zip(leaders, cursors, strict=True)):
                    return []
                waited = True
            except UnsupportedApi:
                raise
            except ClientError as lost:
                failure = lost
            except ApiError as refused:
                gone = not refused.code.retriable or refused.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if gone and not self._patient:
                    raise
                failure = refused
            await asyncio.sleep(options.seeking_ms(max(cursor.retries for cursor in cursors) or 1) / 1000)

    # --- batches of one answer ----------------------------------------------------------------------------------

    def _take(self, cursor: Cursor, answer: _PartitionAnswer) -> Fetched:
        """The wanted batches of one partition's answer; moves the cursor behind them."""
        check(answer.error_code)
        diverging = answer.diverging_epoch
        if diverging.end_offset >= 0:
            raise LogTruncated(cursor.partition, cursor.position, diverging.epoch, diverging.end_offset)
        if answer.preferred_read_replica >= 0:
            until_s = asyncio.get_running_loop().time() + self._cluster.options.metadata_max_age_ms / 1000
            cursor.replica = (answer.preferred_read_replica, until_s)
        asked_at, position, epoch = cursor.position, cursor.position, cursor.last_epoch
        taken: list[RawBatch] = []
        if answer.records:
            view = memoryview(answer.records)
            filtered = AbortedFilter(_aborted(answer)) if self.options.read_committed else None
            for at, header in batches_of.headers(view):
                if cursor.end is not None and position >= cursor.end:
                    break
                if header.next_offset <= position:
                    continue
                data = view[at : at + header.size_bytes]
                if self.options.check_crc:
                    batches_of.check(data, 0, header)
                aborted = filtered is not None and filtered.is_aborted(header, data)
                if not header.is_control and not aborted:
                    taken.append(RawBatch(cursor.partition, header, data, position, cursor.end))
                position, epoch = header.next_offset, header.leader_epoch
            if position == asked_at:
                # A broker sends at least one whole batch from the asked offset on; anything else would loop for ever.
                raise ApiError(
                    ErrorCode.CORRUPT_MESSAGE, f"no whole batch came for offset {asked_at} of {cursor.partition}"
                )
        cursor.position, cursor.last_epoch = position, epoch
        size_bytes = sum(each.header.size_bytes for each in taken)
        return Fetched(cursor, taken, position, answer.high_watermark, answer.last_stable_offset, size_bytes)


def _aborted(answer: _PartitionAnswer) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]


def decode_batch(raw: RawBatch) -> Iterator[ConsumedRecord]:
    """The records of a fetched batch that lie in the wanted range."""
    found = chain.from_iterable(map(partial(_rows, raw), columns(raw.data)))
    header, start, end = raw.header, raw.start, raw.end
    if start <= header.base_offset and (end is None or end >= header.next_offset):
        return found
    return (record for record in found if record.offset >= start and (end is None or record.offset < end))


def _rows(raw: RawBatch, found: Columns) -> Iterator[ConsumedRecord]:
    topic, partition = raw.partition
    rows = zip(repeat(topic), repeat(partition), *found, repeat(raw.header.leader_epoch), strict=False)
    return map(_consumed_record, rows)
