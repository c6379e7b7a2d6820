"""Fetch (key 1): record batches from an offset on, as ranges of the log files.

v7 fetch sessions   v9 leader epochs   v11 rack   v12 diverging epochs, tagged   v13 topics by id   v15 replica state
v16 the leader, with an error that says it is another

The answer leaves at once when it has `min_bytes`, an error of reading, or no time to wait; otherwise the request waits
for its partitions to grow. Partitions that do not exist come last in the answer and do not hasten it, so that a client
which asks for them again and again is slowed down; one that is deleted while the request waits ends the waiting.
`max_bytes` bounds the whole answer and `partition_max_bytes` each partition, but the first batch of the first partition
that has data is always given whole, so that a consumer can never be stuck before a large batch. What a reader with
READ_COMMITTED must be told of aborted transactions is bounded in the same way (see `log.committed`).

A partition whose place has to be looked up on the disk has nothing to say until that is in memory
(`server/storage/cold_reads.py`). If no other one has something either, the answer waits for it, also where the request
has no time to wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ottla.log.files.disk import Cold, StorageError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.replication import REPLICA_SELECTOR_CLASS
from ottla.replica.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition
from ottla.replica.selector import RACK_AWARE, preferred
from ottla.server.api.advertised_brokers import listed_brokers
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import put_together
from ottla.server.fetch.answers import (
    FIRST_VERSION_BY_ID,
    Found,
    PartitionData,
    TopicData,
    find,
    nothing_yet,
    refusal,
    replica_of,
    told,
    whole,
)
from ottla.server.fetch.follower_fetch import fetch_as_follower
from ottla.server.fetch.sessions import INITIAL_EPOCH, Session, Wanted, asked, asked_in_steps, named
from ottla.server.fetch.spark_readers import EXECUTOR
from ottla.server.loop.later import Answer, Large, Later
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

# Consumers since this version tell their rack and may be sent to a follower.
FIRST_VERSION_WITH_RACK = FetchRequest.since("rack_id")
_OPENING = 50  # partitions that can be read from in the time that it takes to open one
_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_READ_AGAIN: Any = object()  # what one who waits for thousands of partitions is told


@handles(FetchRequest, on="both")
def fetch(request: FetchRequest, context: Context) -> Answer[FetchResponse]:
    if context.connection.controller:
        context.is_nudged = True
        return context.services.quorum.ask(request)  # controllers have the metadata journal, and nothing else to read
    by_id = context.request_version >= FIRST_VERSION_BY_ID
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        session = context.services.sessions.enter(request, by_id, context.steady_ms())
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    replica = replica_of(request, context.request_version)
    if replica[0] >= 0:
        return fetch_as_follower(request, session, by_id, replica, context)
    if session is not None and session.is_privileged:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])  # a follower's
    context.is_nudged = False
    fetch = _Fetch(request, session, by_id, context)
    if EXECUTOR in context.client_id:
        context.services.spark_readers.noted(context.client_id, fetch.wanted, context.metadata.state)
    return fetch.answer()


class _Fetch:
    """One fetch while it is being answered; it may try several times before it has enough."""

    __slots__ = (
        "aborted_left",
        "by_id",
        "cold",
        "cold_tries",
        "context",
        "found",
        "is_crowded",
        "later",
        "max_bytes",
        "min_bytes",
        "missing",
        "patient",
        "place",
        "request",
        "session",
        "size_bytes",
        "version",
        "waits_for_disk",
        "wanted",
    )

    def __init__(self, request: FetchRequest, session: Session | None, by_id: bool, context: Context) -> None:
        self.request = request
        self.session = session
        self.by_id = by_id
        self.version = context.request_version
        self.context = context
        self.wanted: list[Wanted] = []
        self.is_crowded = session is None and named(request) > limits.PARTITIONS_FETCHED_PER_SLICE
        if not self.is_crowded:
            self.wanted = list(session.wanted.values() if session is not None else asked(request, by_id).values())
        self.max_bytes = min(request.max_bytes, context.partitions.fetch_max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.missing: list[Found] = []  # what did not exist at the first try
        self.found: list[Found] = []
        self.size_bytes = 0  # of what was found
        self.aborted_left = limits.ABORTED_PER_FETCH_MAX  # how many more may be told of
        self.cold: dict[Partition, None] = {}  # whose places are being looked up
        self.cold_tries = 0
        self.patient = False
        self.waits_for_disk = False
        self.place: dict[Partition, int] = {}  # of a partition in `found`, while the request waits
        self.later: Later[FetchResponse] | None = None

    def answer(self) -> Answer[FetchResponse]:
        if self.is_crowded or (len(self.wanted) > limits.PARTITIONS_OPENED_PER_SLICE and self._takes_long()):
            return self._answer_slowly()
        urgent, partitions = self._read()
        return self._wait(partitions) if self._may_wait(urgent, partitions) else self._respond()

    def _takes_long(self) -> bool:
        """Whether one slice is not enough: so many partitions, or so many that have to be opened."""
        return next(self._slices()) < len(self.wanted)

    def _slices(self) -> Iterator[int]:
        """Where each slice ends; to open a partition takes as long as to read from many."""
        wanted, partitions = self.wanted, self.context.partitions
        weight = 0
        for at, each in enumerate(wanted):
            weight += 1 if not partitions.unopened or partitions.if_opened(each.topic, each.index) else _OPENING
            if weight > limits.PARTITIONS_FETCHED_PER_SLICE:
                yield at
                weight = 0
        yield len(wanted)

    async def _answer_slowly(self) -> FetchResponse | Large[FetchResponse]:
        """`answer` in slices: somebody reads thousands of partitions."""
        if self.is_crowded:
            slices = self.context.services.slices
            self.wanted = list((await slices.finish(asked_in_steps(self.request, self.by_id))).values())
        urgent, partitions = await self._read_slowly()
        if self._may_wait(urgent, partitions):
            answer = await self._wait(partitions)
            if answer is not _READ_AGAIN:
                return answer
            await self._read_slowly()
        return Large(await self._respond_slowly())

    def _may_wait(self, urgent: bool, partitions: list[Partition]) -> bool:
        if self.cold and not (urgent or self.size_bytes):
            self.waits_for_disk = True
            return True
        enough = urgent or self.size_bytes >= self.min_bytes
        return bool(partitions) and not enough and self.request.max_wait_ms > 0

    def _wait(self, partitions: list[Partition]) -> Later[FetchResponse]:
        if self.missing:
            self.wanted = [wanted for wanted, _ in self.found]
        self.place = {partition: at for at, partition in enumerate(partitions)}
        self.later = Later()
        waiters, wait_ms = self.context.services.waiters, self.request.max_wait_ms
        if self.waits_for_disk:
            wait_ms = max(wait_ms, limits.COLD_WAIT_MS)
        waiters.watch(self.later, partitions, self._again, wait_ms, may_be_hurried=True)
        return self.later

    def _again(self, changed: Partition | None) -> bool:
        """One partition changed, or (None) the time is over: answers if that is enough."""
        assert self.later is not None
        if len(self.wanted) > limits.PARTITIONS_FETCHED_PER_SLICE:
            if changed is None or self._read_changed(self.place[changed], all_again=False):
                self.later.set(_READ_AGAIN)
                return True
            return False
        if changed is None:
            self._read()
        elif not self._read_changed(self.place[changed]):
            return False
        self.later.set(self._respond())
        return True

    def _read_changed(self, at: int, *, all_again: bool = True) -> bool:
        """Looks at one partition again; whether there is enough to answer now.

        That is what makes waiting for many partitions cheap: each of their appends costs one look.
        """
        wanted, before = self.found[at]
        others_bytes = self.size_bytes - len(before.records)  # type: ignore[arg-type]  # never None here
        self.aborted_left += len(before.aborted_transactions or ())
        data, urgent, _ = self._look(wanted, max(self.max_bytes - others_bytes, 0), others_bytes == 0)
        self.found[at] = wanted, data
        self.size_bytes = others_bytes + len(data.records)  # type: ignore[arg-type]
        if self.waits_for_disk:
            return urgent or self.size_bytes > 0 or not self.cold
        if not urgent and self.size_bytes < self.min_bytes:
            return False
        if others_bytes == 0 or not all_again:
            return True
        # What was found some time ago may lie in files that are about to go.
        urgent, _ = self._read()
        return urgent or self.size_bytes >= self.min_bytes

    def _read(self) -> tuple[bool, list[Partition]]:
        """Looks at every wanted partition; whether the answer must not wait, and the partitions it may wait for."""
        self._begin_reading()
        partitions: list[Partition] = []
        return self._read_some(self.wanted, partitions), partitions

    async def _read_slowly(self) -> tuple[bool, list[Partition]]:
        """`_read` in slices."""
        self._begin_reading()
        partitions: list[Partition] = []
        urgent = False
        begin = 0
        for end in self._slices():
            await self.context.services.slices.turn()
            urgent = self._read_some(self.wanted[begin:end], partitions) or urgent
            begin = end
        return urgent, partitions

    def _begin_reading(self) -> None:
        self.found, self.size_bytes = [], 0
        self.cold.clear()
        self.aborted_left = limits.ABORTED_PER_FETCH_MAX

    def _read_some(self, some: Sequence[Wanted], partitions: list[Partition]) -> bool:
        total_bytes = self.size_bytes
        urgent = False
        for wanted in some:
            data, hurry, partition = self._look(wanted, max(self.max_bytes - total_bytes, 0), total_bytes == 0)
            if partition is not None:
                partitions.append(partition)
            elif data.error_code in _NOT_THERE and self.later is None:
                data.aborted_transactions = []
                self.missing.append((wanted, data))
                continue
            total_bytes += len(data.records)  # type: ignore[arg-type]
            urgent = urgent or hurry
            self.found.append((wanted, data))
        self.size_bytes = total_bytes
        return urgent

    def _look(self, wanted: Wanted, left: int, first: bool) -> tuple[PartitionData, bool, Partition | None]:
        """What one partition has to say now, whether that must not wait, and the partition, if it is there."""
        partition = None
        try:
            partition = find(self.context, wanted, self.by_id)
            if self.cold:
                self.cold.pop(partition, None)
            data = self._read_one(partition, wanted, left, first)
        except Cold as cold:
            assert partition is not None, "finding it reads nothing"
            self.cold[partition] = None
            self.cold_tries += self.context.services.cold.look_up(cold, partition)
            self.patient = self.cold_tries > limits.COLD_TRIES_MAX * len(self.wanted)
            return nothing_yet(wanted.index, partition, self.request.isolation_level), False, partition
        except ApiError as error:
            return refusal(wanted.index, error.code), True, partition
        except StorageError as error:
            assert partition is not None, "finding it reads nothing"
            self.context.partitions.storage_failed(partition, error)
            return refusal(wanted.index, ErrorCode.KAFKA_STORAGE_ERROR), True, partition
        if data.records:
            wanted.source = partition
        return data, data.diverging_epoch.epoch >= 0 or data.preferred_read_replica >= 0, partition

    def _read_one(self, partition: Partition, wanted: Wanted, left: int, first: bool) -> PartitionData:
        ask = wanted.ask
        isolation = self.request.isolation_level
        if ask.partition_max_bytes < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        rack = self.request.rack_id
        if rack and partition.in_sync is not None:
            other = self._nearer(partition, ask.fetch_offset, rack)
            if other is not None:
                return self._send_to(other, partition, wanted)
        fetched = partition.fetch(
            ask.fetch_offset,
            min(ask.partition_max_bytes, left),
            isolation=isolation,
            current_leader_epoch=ask.current_leader_epoch,
            last_fetched_epoch=ask.last_fetched_epoch,
            at_least_one=first,
            only_leader=self.version < FIRST_VERSION_WITH_RACK,
            aborted_max=max(self.aborted_left, 0),
            patient=self.patient,
        )
        self.aborted_left -= len(fetched.aborted)
        return told(wanted.index, fetched, isolation)

    def _nearer(self, partition: Partition, offset: int, rack: str) -> int | None:
        """The follower in the consumer's rack that it should turn to, where the operator wants that."""
        context = self.context
        if context.settings[REPLICA_SELECTOR_CLASS] != RACK_AWARE:
            return None
        racks = {broker.id: broker.rack for broker, _, _ in listed_brokers(context)}
        return preferred(partition, offset, rack, racks.get, context.steady_ms())

    def _send_to(self, other: int, partition: Partition, wanted: Wanted) -> PartitionData:
        if wanted.ask.current_leader_epoch >= 0:
            partition.check_epoch(wanted.ask.current_leader_epoch)
        data = nothing_yet(wanted.index, partition, self.request.isolation_level)
        data.preferred_read_replica = other
        return data

    def _respond(self) -> FetchResponse:
        found = self._all_found()
        response = self._tell(found)
        response.session_id = self._session_of(found)
        return response

    async def _respond_slowly(self) -> FetchResponse:
        """`_respond` in slices."""
        slices = self.context.services.slices
        found = self._all_found()
        response = FetchResponse(responses=[])
        nodes: dict[int, FetchResponse.NodeEndpoint] = {}
        for begin in range(0, len(found), limits.PARTITIONS_FETCHED_PER_SLICE):
            await slices.turn()
            part = self._tell(found[begin : begin + limits.PARTITIONS_FETCHED_PER_SLICE])
            put_together(response.responses, part.responses, ["partitions"])
            nodes.update((node.node_id, node) for node in part.node_endpoints)
        await slices.turn()
        response.node_endpoints = list(nodes.values())
        response.session_id = self._session_of(found)
        return response

    def _all_found(self) -> list[Found]:
        """Kafka looks at the ids of all topics before it looks at partitions."""
        if not self.missing:
            return self.found
        if not self.by_id:
            return self.found + self.missing
        return self.found + sorted(self.missing, key=lambda each: each[1].error_code != ErrorCode.UNKNOWN_TOPIC_ID)

    def _tell(self, found: list[Found]) -> FetchResponse:
        """The answer with these partitions."""
        session = self.session
        if session is not None:
            found = [(wanted, data) for wanted, data in found if wanted.news(data)]
        for wanted, data in found:
            if data.records:
                if wanted.source is not None:
                    wanted.source.sent_bytes += len(data.records)
                    wanted.source = None
                if session is not None:
                    session.served(wanted)
        return whole(found, self.by_id, 0, self.version, self.context)

    def _session_of(self, found: list[Found]) -> int:
        """The session's id; 0 if there is none."""
        session = self.session
        if session is None and self.request.session_epoch == INITIAL_EPOCH:
            session = self._open_session(found)
        return session.id if session is not None else 0

    def _open_session(self, found: list[Found]) -> Session | None:
        if len(found) > limits.FETCH_SESSION_PARTITIONS_MAX:
            return None
        session = self.context.services.sessions.open(
            [wanted for wanted, _ in found], self.by_id, self.context.steady_ms()
        )
        if session is not None:
            for wanted, data in found:
                wanted.news(data)
        return session


def _refuse_all(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    topics = [
        TopicData(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[refusal(ask.partition, code, []) for ask in topic.partitions],
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=code, responses=topics)
