"""Fetch (key 1): record batches from an offset on, as ranges of the log files.

v7 fetch sessions   v9 leader epochs   v11 rack   v12 diverging epochs, tagged   v13 topics by id   v15 replica state
v16 the leader, with an error that says it is another

The answer leaves at once when it has `min_bytes`, an error of reading, or no time to wait; otherwise the request waits
for its partitions to grow. Partitions that do not exist come last in the answer and do not hasten it, so that a client
which asks for them again and again is slowed down; one that is deleted while the request waits ends the waiting.
`max_bytes` bounds the whole answer and `partition_max_bytes` each partition, but the first batch of the first partition
that has data is always given whole, so that a consumer can never be stuck before a large batch.
"""

from __future__ import annotations

from ottla.log.disk import StorageError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.replica.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition
from ottla.server.answer import Answer, Later
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.sessions import INITIAL_EPOCH, Session, Wanted, asked
from ottla.server.spark_readers import EXECUTOR
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

TopicData = FetchResponse.FetchableTopicResponse
PartitionData = TopicData.PartitionData
# What one partition has to say.
Found = tuple[Wanted, PartitionData]

FIRST_VERSION_BY_ID = 13
FIRST_VERSION_WITH_LEADER = 16
# Consumers up to this version do not know KAFKA_STORAGE_ERROR; Kafka tells them what makes them look for the leader.
LAST_VERSION_WITHOUT_STORAGE_ERROR = 5
_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@handles(FetchRequest, on="both")
def fetch(request: FetchRequest, context: Context) -> Answer[FetchResponse]:
    by_id = context.request_version >= FIRST_VERSION_BY_ID
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return _refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        session = context.services.sessions.enter(request, by_id, context.now_ms())
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    fetch = _Fetch(request, session, by_id, context)
    if EXECUTOR in context.client_id:
        context.services.spark_readers.noted(context.client_id, fetch.wanted, context.metadata.state)
    return fetch.answer()


class _Fetch:
    """One fetch while it is being answered; it may try several times before it has enough."""

    __slots__ = (
        "by_id",
        "context",
        "found",
        "later",
        "max_bytes",
        "min_bytes",
        "missing",
        "place",
        "request",
        "session",
        "size_bytes",
        "version",
        "wanted",
    )

    def __init__(self, request: FetchRequest, session: Session | None, by_id: bool, context: Context) -> None:
        self.request = request
        self.session = session
        self.by_id = by_id
        self.version = context.request_version
        self.context = context
        self.wanted = list(session.wanted.values() if session is not None else asked(request, by_id).values())
        self.max_bytes = min(request.max_bytes, context.partitions.fetch_max_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.missing: list[Found] = []  # what did not exist at the first try
        self.found: list[Found] = []
        self.size_bytes = 0  # of what was found
        self.place: dict[Partition, int] = {}  # of a partition in `found`, while the request waits
        self.later: Later[FetchResponse] | None = None

    def answer(self) -> Answer[FetchResponse]:
        urgent, partitions = self._read()
        if urgent or self.size_bytes >= self.min_bytes or self.request.max_wait_ms <= 0 or not partitions:
            return self._respond()
        if self.missing:
            self.wanted = [wanted for wanted, _ in self.found]
        self.place = {partition: at for at, partition in enumerate(partitions)}
        self.later = Later()
        self.context.services.waiters.watch(self.later, partitions, self._again, self.request.max_wait_ms)
        return self.later

    def _again(self, changed: Partition | None) -> bool:
        """One partition changed, or (None) the time is over: answers if that is enough."""
        assert self.later is not None
        if changed is None:
            self._read()
        elif not self._read_changed(self.place[changed]):
            return False
        self.later.set(self._respond())
        return True

    def _read_changed(self, at: int) -> bool:
        """Looks at one partition again; whether there is enough to answer now.

        That is what makes waiting for many partitions cheap: each of their appends costs one look.
        """
        wanted, before = self.found[at]
        others_bytes = self.size_bytes - len(before.records)  # type: ignore[arg-type]  # never None here
        data, urgent, _ = self._look(wanted, max(self.max_bytes - others_bytes, 0), others_bytes == 0)
        self.found[at] = wanted, data
        self.size_bytes = others_bytes + len(data.records)  # type: ignore[arg-type]
        if not urgent and self.size_bytes < self.min_bytes:
            return False
        if others_bytes == 0:
            return True
        # What was found some time ago may lie in files that are about to go.
        urgent, _ = self._read()
        return urgent or self.size_bytes >= self.min_bytes

    def _read(self) -> tuple[bool, list[Partition]]:
        """Looks at every wanted partition; whether the answer must not wait, and the partitions it may wait for."""
        self.found = []
        partitions: list[Partition] = []
        total_bytes = 0
        urgent = False
        for wanted in self.wanted:
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
        return urgent, partitions

    def _look(self, wanted: Wanted, left: int, first: bool) -> tuple[PartitionData, bool, Partition | None]:
        """What one partition has to say now, whether that must not wait, and the partition, if it is there."""
        partition = None
        try:
            partition = self._partition(wanted)
            data = self._read_one(partition, wanted, left, first)
        except ApiError as error:
            return _refusal(wanted.index, error.code, None), True, partition
        except StorageError as error:
            assert partition is not None, "finding it reads nothing"
            self.context.partitions.storage_failed(partition, error)
            return _refusal(wanted.index, ErrorCode.KAFKA_STORAGE_ERROR, None), True, partition
        return data, data.diverging_epoch.epoch >= 0, partition

    def _partition(self, wanted: Wanted) -> Partition:
        partitions = self.context.partitions
        if self.by_id:
            return partitions.find_by_id(wanted.topic, wanted.index)  # type: ignore[arg-type]  # by_id: an id
        return partitions.find(wanted.topic, wanted.index)  # type: ignore[arg-type]  # else a name

    def _read_one(self, partition: Partition, wanted: Wanted, left: int, first: bool) -> PartitionData:
        ask = wanted.ask
        isolation = self.request.isolation_level
        if ask.partition_max_bytes < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        fetched = partition.fetch(
            ask.fetch_offset,
            min(ask.partition_max_bytes, left),
            isolation=isolation,
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
            if isolation == READ_COMMITTED
            else None,
            records=fetched.records if fetched.records is not None else b"",
        )
        if fetched.diverging is not None:
            data.diverging_epoch.epoch, data.diverging_epoch.end_offset = fetched.diverging
        return data

    def _respond(self) -> FetchResponse:
        session = self.session
        found = self.found
        if self.missing:
            found = found + sorted(self.missing, key=_unknown_ids_first)
        if session is not None:
            found = [(wanted, data) for wanted, data in found if wanted.news(data)]
            for wanted, data in found:
                if data.records:
                    session.served(wanted)
        elif self.request.session_epoch == INITIAL_EPOCH:
            session = self._open_session(found)
        topics: list[TopicData] = []
        last: str | bytes | None = None
        failed = False
        for wanted, data in found:
            failed = failed or data.error_code != 0
            if wanted.topic != last:
                last = wanted.topic
                name, topic_id = ("", last) if self.by_id else (last, NO_ID)
                topics.append(TopicData(topic=name, topic_id=topic_id, partitions=[]))  # type: ignore[arg-type]
            topics[-1].partitions.append(data)
        response = FetchResponse(responses=topics, session_id=session.id if session is not None else 0)
        if failed:
            self._explain(response)
        return response

    def _open_session(self, found: list[Found]) -> Session | None:
        session = self.context.services.sessions.open(
            [wanted for wanted, _ in found], self.by_id, self.context.now_ms()
        )
        if session is not None:
            for wanted, data in found:
                wanted.news(data)
        return session

    def _explain(self, response: FetchResponse) -> None:
        """What a client of this version can make of the errors, and who leads where it believed in another leader."""
        version = self.version
        for topic in response.responses:
            for data in topic.partitions:
                if data.error_code == ErrorCode.KAFKA_STORAGE_ERROR and version <= LAST_VERSION_WITHOUT_STORAGE_ERROR:
                    data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif data.error_code == ErrorCode.FENCED_LEADER_EPOCH and version >= FIRST_VERSION_WITH_LEADER:
                    self._name_leader(topic, data, response)

    def _name_leader(self, topic: TopicData, data: PartitionData, response: FetchResponse) -> None:
        context = self.context
        find = context.partitions.find_by_id
        data.current_leader.leader_id = context.node_id
        data.current_leader.leader_epoch = find(topic.topic_id, data.partition_index).leader_epoch
        if not response.node_endpoints:
            host, port = context.advertised(context.connection.listener)
            rack = context.settings.get("broker.rack")
            endpoint = FetchResponse.NodeEndpoint(node_id=context.node_id, host=host, port=port, rack=rack)
            response.node_endpoints = [endpoint]


def _unknown_ids_first(entry: Found) -> bool:
    """Kafka looks at the ids of all topics before it looks at partitions."""
    return entry[1].error_code != ErrorCode.UNKNOWN_TOPIC_ID


def _refuse_all(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    topics = [
        TopicData(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[_refusal(ask.partition, code, []) for ask in topic.partitions],
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=code, responses=topics)


def _refusal(index: int, code: ErrorCode, aborted: list[PartitionData.AbortedTransaction] | None) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=aborted, records=b""
    )
