"""Fetch (key 1): record batches from an offset on, as ranges of the log files.

v7 fetch sessions   v9 leader epochs   v11 rack   v12 diverging epochs, tagged   v13 topics by id   v15 replica state

The answer leaves at once when it has `min_bytes`, an error, or no time to wait; otherwise the request waits for its
partitions to grow. `max_bytes` bounds the whole answer and `partition_max_bytes` each partition, but the first batch of
the first partition that has data is always given whole, so that a consumer can never be stuck before a large batch.
"""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.replica.partition import Partition
from ottla.server.answer import Answer, Later
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.sessions import Session, Wanted, asked
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

TopicData = FetchResponse.FetchableTopicResponse
PartitionData = TopicData.PartitionData

FIRST_VERSION_BY_ID = 13
READ_COMMITTED = 1


@handles(FetchRequest)
def fetch(request: FetchRequest, context: Context) -> Answer[FetchResponse]:
    by_id = context.request_version >= FIRST_VERSION_BY_ID
    try:
        session = context.services.sessions.open(request, by_id, context.now_ms())
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    return _Fetch(request, session, by_id, context).answer()


class _Fetch:
    """One fetch while it is being answered; it may try several times before it has enough."""

    __slots__ = ("by_id", "context", "incremental", "later", "max_bytes", "request", "session", "wanted")

    def __init__(self, request: FetchRequest, session: Session | None, by_id: bool, context: Context) -> None:
        self.request = request
        self.session = session
        self.by_id = by_id
        self.context = context
        self.incremental = session is not None and request.session_epoch > 0
        self.wanted = list(session.wanted.values() if session is not None else asked(request, by_id))
        self.max_bytes = min(request.max_bytes, context.partitions.fetch_max_bytes)
        self.later: Later[FetchResponse] | None = None

    def answer(self) -> Answer[FetchResponse]:
        found, size_bytes, urgent, partitions = self._read()
        if urgent or size_bytes >= self.request.min_bytes or self.request.max_wait_ms <= 0 or not self.wanted:
            return self._respond(found)
        self.later = Later()
        self.context.services.waiters.watch(partitions, self._again, self.request.max_wait_ms)
        return self.later

    def _again(self, expired: bool) -> bool:
        assert self.later is not None
        if self.later.abandoned:
            return True
        found, size_bytes, urgent, _ = self._read()
        if not (expired or urgent or size_bytes >= self.request.min_bytes):
            return False
        self.later.set(self._respond(found))
        return True

    def _read(self) -> tuple[list[tuple[Wanted, PartitionData]], int, bool, list[Partition]]:
        """What every wanted partition has to say now, its bytes in total, and whether that must not wait."""
        found: list[tuple[Wanted, PartitionData]] = []
        partitions: list[Partition] = []
        left = self.max_bytes
        total = 0
        urgent = False
        for wanted in self.wanted:
            try:
                partition = self._partition(wanted)
                data = self._read_one(partition, wanted, max(left, 0), first=total == 0)
                partitions.append(partition)
            except ApiError as error:
                data = _refusal(wanted.index, error.code)
                urgent = True
            size_bytes = len(data.records)  # type: ignore[arg-type]  # never None here
            total += size_bytes
            left -= size_bytes
            urgent = urgent or data.diverging_epoch.epoch >= 0
            found.append((wanted, data))
        return found, total, urgent, partitions

    def _partition(self, wanted: Wanted) -> Partition:
        partitions = self.context.partitions
        if self.by_id:
            return partitions.find_by_id(wanted.topic, wanted.index)  # type: ignore[arg-type]  # by_id: an id
        return partitions.find(wanted.topic, wanted.index)  # type: ignore[arg-type]  # else a name

    def _read_one(self, partition: Partition, wanted: Wanted, left: int, first: bool) -> PartitionData:
        ask = wanted.ask
        committed = self.request.isolation_level == READ_COMMITTED
        fetched = partition.fetch(
            ask.fetch_offset,
            min(ask.partition_max_bytes, left),
            isolation=self.request.isolation_level,
            current_leader_epoch=ask.current_leader_epoch,
            last_fetched_epoch=ask.last_fetched_epoch,
            at_least_one=first,
        )
        data = PartitionData(
            partition_index=wanted.index,
            error_code=0,
            high_watermark=fetched.high_watermark,
            last_stable_offset=fetched.last_stable_offset,
            log_start_offset=fetched.log_start_offset,
            aborted_transactions=[
                PartitionData.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                for producer_id, first_offset in fetched.aborted
            ]
            if committed
            else None,
            records=fetched.records if fetched.records is not None else b"",
        )
        if fetched.diverging is not None:
            data.diverging_epoch.epoch, data.diverging_epoch.end_offset = fetched.diverging
        return data

    def _respond(self, found: list[tuple[Wanted, PartitionData]]) -> FetchResponse:
        session = self.session
        topics: list[TopicData] = []
        last: str | bytes | None = None
        for wanted, data in found:
            if session is not None:
                # Told or not, the session must remember what this answer says.
                news = wanted.news(data)
                if data.records:
                    session.served(wanted)
                if self.incremental and not news:
                    continue
            if wanted.topic != last:
                last = wanted.topic
                name, topic_id = ("", last) if self.by_id else (last, NO_ID)
                topics.append(TopicData(topic=name, topic_id=topic_id, partitions=[]))  # type: ignore[arg-type]
            topics[-1].partitions.append(data)
        return FetchResponse(responses=topics, session_id=session.id if session is not None else 0)


def _refusal(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
    )
