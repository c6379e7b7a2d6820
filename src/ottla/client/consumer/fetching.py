"""Fetching: one Fetch per broker for all partitions that are wanted from it.

`RangeReader` and `Consumer` are both built on `ConsumerFetcher`; each decides what to fetch and what to do with it.

Rules:
- One Fetch per broker carries all partitions that it leads, so that a hundred idle partitions cost one long poll.
- A cursor is part of one request at a time (`busy`), even if its partition moves to another leader meanwhile.
- Deliver, then advance: an answer is read without moving anything (`consumer.fetched`). A cursor moves in `collect`, in
  the same step that hands the batches to its owner. Batches that are lost before (by a task that fails or is cancelled)
  are requested again.
- Every partition has its own outcome. An error that is not transient comes as `Fetched.error`; `collect` itself does
  not raise. Transient errors are waited out (`client.leader_search`): for `api_timeout_ms`, or for ever if the fetcher
  is `patient`.
- Other requests (for leaders, for the bounds of a log, for the offset of a time) run in tasks of their own: no
  partition's records wait for another's answer.
- A leader that is gone is looked up at once; a broker that names the new leader (KIP-951) is believed. A leader may
  also name a follower nearer to the client (KIP-392): it is asked until it fails, or `metadata_max_age_ms` are over.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster, Purpose
from ottla.client.connection import Connection
from ottla.client.consumer.fetched import (
    ConsumedRecord,
    FetchCursor,
    Fetched,
    PartitionAnswer,
    RawBatch,
    ReadOptions,
    decode_batch,
    read_answer,
)
from ottla.client.consumer.offsets import EARLIEST, LATEST, NOT_FOUND, Time, ask_leader
from ottla.client.errors import ClientError, LastingError, LogTruncated, OffsetOutOfRange, TopicRecreated, check
from ottla.client.leader_search import LeaderSearch
from ottla.client.metadata import NO_LEADER
from ottla.client.producer.links import SILENCE_MS
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, LeaderEpoch, TopicPartition
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

__all__ = ["ConsumedRecord", "ConsumerFetcher", "FetchCursor", "Fetched", "RawBatch", "ReadOptions", "decode_batch"]

_BY_ID_SINCE = FetchRequest.Topic.since("topic_id")
_NOWHERE = -1  # stands for the broker of cursors whose leader has to be looked up
# From a follower, these errors only mean that the leader has to be asked.
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


_BOUNDS: tuple[Time, Time] = (EARLIEST, LATEST)
# Why a position is not in the log: out of range, of a deleted topic of the same name, or truncated.
_Beyond = type[OffsetOutOfRange] | LogTruncated


class _Asked(NamedTuple):
    """A task's request: the broker, if it is a Fetch, and the cursors that are busy until its end."""

    node_id: int
    cursors: list[FetchCursor]


class ConsumerFetcher:
    """Keeps one Fetch per broker in flight for the cursors that its owner names."""

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
        self._wake = wake
        self._rack_id = rack_id
        self._tasks: dict[asyncio.Task[list[Fetched]], _Asked] = {}
        self._failed: list[Fetched] = []  # results of cursors whose leaders cannot be found
        self._news = asyncio.Event()
        self._search = LeaderSearch(cluster, patient=patient, found=self._release, failed=self._not_led)

    def __bool__(self) -> bool:
        """Whether a request is in flight, or a result was not collected yet."""
        return bool(self._tasks or self._failed or self._search)

    async def close(self) -> None:
        """Stop fetching; results that were not collected are dropped, and no cursor has moved past them."""
        tasks, self._tasks = self._tasks, {}
        failed, self._failed = self._failed, []
        for fetched in failed:
            fetched.cursor.busy = False
        for task, asked in tasks.items():
            task.cancel()
            for cursor in asked.cursors:
                cursor.busy = False
        await asyncio.gather(*tasks, self._search.close(), return_exceptions=True)

    def start(self, cursors: Iterable[FetchCursor], *, hurried: bool = False) -> None:
        """Make sure that every broker that leads one of the cursors has a Fetch in flight. A hurried Fetch does not
        wait for data (the owner will want more partitions of the same broker in a moment).
        """
        by_leader: dict[int, list[FetchCursor]] = {}
        timed: dict[int, list[FetchCursor]] = {}
        for cursor in cursors:
            if not cursor.busy:
                node_id = self._source_of(cursor)
                if node_id == _NOWHERE:
                    self._search.add(cursor)
                elif cursor.time is not None:
                    timed.setdefault(node_id, []).append(cursor)
                else:
                    by_leader.setdefault(node_id, []).append(cursor)
        nodes_asked = [asked.node_id for asked in self._tasks.values()]
        for node_id, wanted in by_leader.items():
            if node_id not in nodes_asked:
                request, names = self._request(wanted, hurried)
                self._spawn(self._fetch(node_id, wanted, request, names), wanted, node_id)
        for node_id, wanted in timed.items():
            times = {each.partition: (each.time or LATEST, self._epoch_of(each.partition)) for each in wanted}
            for cursor in wanted:
                cursor.topic_id = self._cluster.metadata.topics[cursor.partition.topic].topic_id  # it named the leader
            self._spawn(self._find_offsets(node_id, wanted, times), wanted)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait until there is something to collect or to start, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            pass
        self._news.clear()

    def collect(self) -> list[Fetched]:
        """Return the results since the last call and move their cursors behind them: from here on
        the owner has them.
        """
        found, self._failed = self._failed, []
        for task in [each for each in self._tasks if each.done()]:
            asked = self._tasks.pop(task)
            error = task.exception()
            if error is None:
                found += task.result()
            else:  # a defect, not an outcome: it has to be reported, and must not affect other cursors
                found += [_failure(cursor, error) for cursor in asked.cursors]
            for cursor in asked.cursors:
                cursor.busy = False
        for fetched in found:
            fetched.cursor.busy = False
            if fetched.error is None:
                _advance(fetched)
        return found

    def _spawn(
        self, work: Coroutine[object, None, list[Fetched]], cursors: list[FetchCursor], node_id: int = _NOWHERE
    ) -> None:
        for cursor in cursors:
            cursor.busy = True
        task = asyncio.create_task(work)
        self._tasks[task] = _Asked(node_id, cursors)
        task.add_done_callback(self._tell)

    def _tell(self, what: object = None) -> None:
        self._news.set()
        if self._wake is not None:
            self._wake(what)

    def _release(self, cursor: FetchCursor) -> None:
        cursor.busy = False
        self._tell()

    def _not_led(self, cursor: FetchCursor, error: Exception) -> None:
        self._failed.append(_failure(cursor, error))
        self._tell()

    # --- brokers to ask -----------------------------------------------------------------------------------------

    def _source_of(self, cursor: FetchCursor) -> int:
        """Return the broker to ask: the leader, or the follower that it named."""
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

    def _is_recreated(self, cursor: FetchCursor) -> bool:
        topic = self._cluster.metadata.topics.get(cursor.partition.topic)
        return topic is not None and topic.topic_id not in (cursor.topic_id, NO_ID)

    def _look_for_leader(self, cursor: FetchCursor, error: Exception) -> None:
        if cursor.replica is not None:
            cursor.replica = None  # ask the leader next
        else:
            cursor.failure = error

    # --- one round trip -----------------------------------------------------------------------------------------

    async def _fetch(
        self, node_id: int, cursors: list[FetchCursor], request: FetchRequest, names: dict[bytes, str]
    ) -> list[Fetched]:
        """Send a Fetch to one broker; a transient error yields no result, but the leader is looked up again."""
        try:
            answer = await self._exchange(node_id, cursors, request, is_named=NO_ID in names)
            check(answer.error_code)
        except (ClientError, ApiError) as error:
            return self._not_answered(cursors, error)
        by_partition = {cursor.partition: cursor for cursor in cursors}
        found: list[Fetched] = []
        beyond: dict[FetchCursor, _Beyond] = {}  # their positions are not in the log
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")  # an answer has either the name or the id
            for partition in topic.partitions:
                cursor = by_partition.get(TopicPartition(name, partition.partition_index))
                if cursor is None:
                    continue
                try:
                    found.append(read_answer(cursor, partition, self.options))
                    self._answered(cursor, partition)
                except Exception as error:  # no error may lose the other partitions' records
                    if (kind := self._beyond(cursor, error)) is not None:
                        beyond[cursor] = kind
                    elif not self._passes(cursor, partition, answer, error):
                        found.append(_failure(cursor, error))
        if beyond:
            cursors[:] = [cursor for cursor in cursors if cursor not in beyond]
            self._spawn(self._find_bounds(node_id, beyond), list(beyond))
        return found

    def _beyond(self, cursor: FetchCursor, error: Exception) -> _Beyond | None:
        """Return what this error says about the position, or None if it is about something else."""
        if not isinstance(error, ApiError) or cursor.replica is not None:
            return None
        if error.code == ErrorCode.UNKNOWN_TOPIC_ID:
            return TopicRecreated if self._is_recreated(cursor) else None
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return error if isinstance(error, LogTruncated) else OffsetOutOfRange
        return None

    def _answered(self, cursor: FetchCursor, partition: PartitionAnswer) -> None:
        cursor.retries = 0
        if partition.preferred_read_replica >= 0:
            until_s = asyncio.get_running_loop().time() + self._cluster.options.metadata_max_age_ms / 1000
            cursor.replica = (partition.preferred_read_replica, until_s)

    def _passes(self, cursor: FetchCursor, partition: PartitionAnswer, answer: FetchResponse, error: Exception) -> bool:
        """Return whether the error of one partition is transient; if so, have another broker asked next time."""
        if not isinstance(error, ApiError):
            return False
        if cursor.replica is not None and error.code in _OF_FOLLOWERS:
            cursor.replica = None
            return True
        if not error.code.retriable or error.code == ErrorCode.CORRUPT_MESSAGE:
            return False
        if not self._cluster.metadata.hint(cursor.partition, partition.current_leader, answer.node_endpoints):
            self._look_for_leader(cursor, error)
        return True

    def _not_answered(self, cursors: Iterable[FetchCursor], error: ClientError | ApiError) -> list[Fetched]:
        """Give all cursors of a failed request the same outcome."""
        if isinstance(error, LastingError) or (isinstance(error, ApiError) and not error.code.retriable):
            return [_failure(cursor, error) for cursor in cursors]
        for cursor in cursors:
            self._look_for_leader(cursor, error)
        return []

    async def _exchange(
        self, node_id: int, cursors: list[FetchCursor], request: FetchRequest, *, is_named: bool
    ) -> FetchResponse:
        connection = await self._cluster.connection(node_id, Purpose.FETCH)
        version = connection.version_of(FetchRequest, at_most=_BY_ID_SINCE - 1 if is_named else None)
        timeout_ms = self.options.max_wait_ms + self._cluster.options.request_timeout_ms
        asked = await connection.submit(request, version=version, timeout_ms=timeout_ms)
        patience_s = (request.max_wait_ms + SILENCE_MS) / 1000
        while not (await asyncio.wait([asked], timeout=patience_s))[0]:
            await self._close_if_others_lead(connection, cursors)
        return asked.result()

    def _request(self, cursors: list[FetchCursor], hurried: bool) -> tuple[FetchRequest, dict[bytes, str]]:
        options = self.options
        topics: dict[tuple[str, bytes], FetchRequest.Topic] = {}
        ids: dict[bytes, str] = {}
        for cursor in cursors:
            name, index = cursor.partition
            info = self._cluster.metadata.topics[name]  # it named the leader
            if cursor.topic_id == NO_ID:
                cursor.topic_id = info.topic_id
            topic = topics.get((name, cursor.topic_id))
            if topic is None:
                topic = FetchRequest.Topic(topic=name, topic_id=cursor.topic_id, partitions=[])
                topics[name, cursor.topic_id] = topic
                ids[cursor.topic_id] = name
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
        return request, ids

    async def _close_if_others_lead(self, connection: Connection, cursors: list[FetchCursor]) -> None:
        """Close the connection if another broker leads one of these partitions by now: the silent
        broker may be dead.
        """
        try:
            await self._cluster.refresh(dict.fromkeys(cursor.partition.topic for cursor in cursors))
        except (ClientError, ApiError):
            return
        for cursor in cursors:
            topic = self._cluster.metadata.topics.get(cursor.partition.topic)
            info = None if topic is None else topic.partition(cursor.partition.partition)
            if info is not None and info.leader != NO_LEADER and (info.leader, info.leader_epoch) != cursor.tried:
                connection.close()
                return

    # --- other requests -----------------------------------------------------------------------------------------

    async def _find_offsets(
        self, node_id: int, cursors: list[FetchCursor], wanted: Mapping[TopicPartition, tuple[Time, LeaderEpoch]]
    ) -> list[Fetched]:
        """Look up the positions of cursors that have a time instead."""
        asked = await ask_leader(self._cluster, node_id, wanted, read_committed=self.options.read_committed)
        found: list[Fetched] = []
        for cursor in cursors:
            cursor.tried = (node_id, wanted[cursor.partition][1])
            if cursor.partition in asked.failed:
                found += self._not_told(cursor, asked.failed[cursor.partition])
            elif (offset := asked.found[cursor.partition].offset) == NOT_FOUND:
                cursor.time = LATEST  # there is no record so late
            else:
                cursor.retries = 0
                found.append(Fetched(cursor, [], offset))
        return found

    async def _find_bounds(self, node_id: int, cursors: Mapping[FetchCursor, _Beyond]) -> list[Fetched]:
        """Look up the bounds of the logs of cursors whose positions are not there, and return the errors."""
        wanted = [{each.partition: (at, self._epoch_of(each.partition)) for each in cursors} for at in _BOUNDS]
        asked = [ask_leader(self._cluster, node_id, each, read_committed=False) for each in wanted]
        starts, ends = await asyncio.gather(*asked)
        failed = starts.failed | ends.failed
        found: list[Fetched] = []
        for cursor, kind in cursors.items():
            partition, position = cursor.partition, cursor.position
            if partition in failed:
                found += self._not_told(cursor, failed[partition])
                continue
            start, end = starts.found[partition].offset, ends.found[partition].offset
            if not start <= position <= end or kind is TopicRecreated:
                error = TopicRecreated if kind is TopicRecreated else OffsetOutOfRange
                found.append(_failure(cursor, error(partition, position, start, end)))
            elif isinstance(kind, LogTruncated):
                found.append(_failure(cursor, kind))
            else:
                # The broker does not lead and lacks records that the leader has: treat it as if it had said so.
                self._look_for_leader(cursor, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return found

    def _not_told(self, cursor: FetchCursor, error: Exception) -> list[Fetched]:
        if self._cluster.passes(error):
            self._look_for_leader(cursor, error)
            return []
        return [_failure(cursor, error)]

    def _epoch_of(self, partition: TopicPartition) -> LeaderEpoch:
        topic = self._cluster.metadata.topics.get(partition.topic)
        info = None if topic is None else topic.partition(partition.partition)
        return NO_LEADER_EPOCH if info is None else info.leader_epoch


def _failure(cursor: FetchCursor, error: BaseException) -> Fetched:
    return Fetched(cursor, [], cursor.position, error=error)  # type: ignore[arg-type]


def _advance(fetched: Fetched) -> None:
    cursor = fetched.cursor
    cursor.position = fetched.next_offset
    if cursor.time is not None:
        cursor.time = None
    else:
        cursor.last_epoch = fetched.next_epoch
