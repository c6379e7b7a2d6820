"""How fetches of consumers are answered.

The answer is sent at once when it has `min_bytes`, an error, or no time to wait; otherwise the request waits until its
partitions grow. Partitions that do not exist come last in the answer and do not end the wait, so that a client which
asks for them repeatedly is slowed down; a partition that is deleted while the request waits ends the wait. `max_bytes`
bounds the whole answer and `partition_max_bytes` each partition, but the first batch of the first partition with data
is always sent whole, so that a consumer is never stuck before a large batch. The aborted transactions that a
READ_COMMITTED consumer must know are bounded in the same way (see `log.committed`).

If no partition has data because some need a read from the disk, the answer waits for that, even if the request has no
time to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.session_epochs import INITIAL_EPOCH
from ottla.model.settings.replication import REPLICA_SELECTOR_CLASS
from ottla.replica.partition import Partition
from ottla.replica.selector import RACK_AWARE, preferred
from ottla.server.fetch.answers import Reachable, nothing_yet, refusal, told, whole
from ottla.server.fetch.engine import Fetch, FetchEngine
from ottla.server.fetch.fetch_reads import FetchReads
from ottla.server.fetch.fetch_sessions import (
    AskedPartition,
    FetchSession,
    FetchSessions,
    PartitionData,
    asked_partitions,
    is_too_large,
    names_more_than,
)
from ottla.server.quotas.fetch_quota import FetchQuota
from ottla.server.settings.configs import Configs
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

# Since this version consumers send their rack and may be directed to a follower.
FIRST_VERSION_WITH_RACK = FetchRequest.since("rack_id")
# Partitions with these errors are not read at all, and do not hasten the answer.
_NOT_THERE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)

ConsumerFetch = Fetch[AskedPartition, PartitionData, FetchResponse]
Found = tuple[AskedPartition, tuple[Partition | None, PartitionData]]


class Consumers:
    """The dependencies that the fetches of all consumers of a node share."""

    __slots__ = ("configs", "engine", "sessions", "state", "steady_ms")

    def __init__(
        self,
        engine: FetchEngine,
        sessions: FetchSessions,
        configs: Configs,
        state: Callable[[], ClusterState],
        steady_ms: Callable[[], int],
    ) -> None:
        self.engine = engine
        self.sessions = sessions
        self.configs = configs
        self.state = state
        self.steady_ms = steady_ms

    def refused(self, topic: str | bytes) -> None:
        """Count a partition of this topic that a consumer was refused."""
        partitions = self.engine.partitions
        held = partitions.by_id.get(topic) if isinstance(topic, bytes) else partitions.by_name.get(topic)
        if held is not None:
            held.failed_fetches += 1


class ConsumerReads(FetchReads):
    __slots__ = (
        "_aborted_left",
        "_by_key",
        "_consumers",
        "_missing",
        "_quota",
        "_reachable",
        "_readable",
        "_version",
        "asked",
        "is_crowded",
        "request",
        "session",
    )

    waits_for_disk = True

    def __init__(
        self,
        consumers: Consumers,
        request: FetchRequest,
        session: FetchSession | None,
        by_id: bool,
        version: int,
        reachable: Reachable,
        readable: Callable[[str], bool] | None = None,
        quota: FetchQuota | None = None,
    ) -> None:
        """`session` is that of an incremental fetch, None for a full one. `readable` tells which topics may be read;
        `quota` is None if no client has a quota.
        """
        super().__init__(consumers.engine, by_id)
        self.request = request
        self.session = session
        self.asked: list[AskedPartition] = []
        # Whether there are so many partitions that even the list of them is made in slices.
        self.is_crowded = session is None and names_more_than(request, limits.PARTITIONS_FETCHED_PER_SLICE)
        if not self.is_crowded:
            partitions = session.partitions if session is not None else asked_partitions(request, by_id)
            self.asked = list(partitions.values())
        self._consumers = consumers
        self._version = version
        self._reachable = reachable
        self._quota = quota
        self._readable = readable
        self._aborted_left = limits.ABORTED_PER_FETCH_MAX  # how many more aborted transactions the answer may have
        # partitions that did not exist at the first attempt
        self._missing: dict[AskedPartition, tuple[None, PartitionData]] = {}
        self._by_key: dict[Hashable, AskedPartition] = {}  # set while the request waits

    # --- attempts

    def find(self, asked: AskedPartition) -> Partition:
        if self._readable is not None:
            self._check_readable(asked.topic, self._readable)
        return super().find(asked)

    def _check_readable(self, topic: str | bytes, readable: Callable[[str], bool]) -> None:
        """Refuse a topic that the consumer may not read, whether its partition exists or not."""
        if isinstance(topic, bytes):
            found = self._consumers.state().topic_by_id.get(topic)
            if found is None:
                return
            topic = found.name
        if not readable(topic):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def to_read(self, fetch: ConsumerFetch, changed: Hashable | None) -> Sequence[AskedPartition]:
        self.urgent = False
        if changed is not None:
            return (self._by_key[changed],)
        return self.asked if fetch.later is None else tuple(fetch.found)

    def count(self) -> int:
        return len(self.asked)

    def read(self, fetch: ConsumerFetch, asked: AskedPartition, partition: Partition, left_bytes: int) -> PartitionData:
        ask, isolation = asked.ask, self.request.isolation_level
        if ask.partition_max_bytes < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        rack = self.request.rack_id
        if rack and partition.in_sync is not None:
            other = self._nearer(partition, ask.fetch_offset, rack)
            if other is not None:
                return self._send_to(other, partition, asked)
        fetched = partition.fetch(
            ask.fetch_offset,
            left_bytes if left_bytes < ask.partition_max_bytes else ask.partition_max_bytes,
            isolation=isolation,
            current_leader_epoch=ask.current_leader_epoch,
            last_fetched_epoch=ask.last_fetched_epoch,
            at_least_one=fetch.size_bytes == 0,
            only_leader=self._version < FIRST_VERSION_WITH_RACK,
            aborted_max=self._aborted_left if self._aborted_left > 0 else 0,
            patient=fetch.patient,
        )
        self._aborted_left -= len(fetched.aborted)
        if fetched.diverging is not None and fetched.diverging[0] >= 0:
            self.urgent = True
        return told(asked.index, fetched, isolation)

    def _nearer(self, partition: Partition, offset: int, rack: str) -> int | None:
        """Return the follower in the consumer's rack that the consumer should read from, if the operator
        enabled that.
        """
        consumers = self._consumers
        if consumers.configs.broker[REPLICA_SELECTOR_CLASS] != RACK_AWARE:
            return None
        racks = {broker.id: broker.rack for broker, _, _ in self._reachable()}
        return preferred(partition, offset, rack, racks.get, consumers.steady_ms())

    def _send_to(self, other: int, partition: Partition, asked: AskedPartition) -> PartitionData:
        if asked.ask.current_leader_epoch >= 0:
            partition.check_epoch(asked.ask.current_leader_epoch)
        data = self.nothing_yet(asked, partition)
        data.preferred_read_replica = other
        self.urgent = True
        return data

    def nothing_yet(self, asked: AskedPartition, partition: Partition) -> PartitionData:
        return nothing_yet(asked.index, partition, self.request.isolation_level)

    def refuse(
        self, fetch: ConsumerFetch, asked: AskedPartition, partition: Partition | None, error: ApiError
    ) -> PartitionData | None:
        if partition is None and error.code in _NOT_THERE and fetch.later is None:
            self._missing[asked] = None, refusal(asked.index, error.code, [])
            return None
        self.urgent = True
        return refusal(asked.index, error.code)

    def read_again(self, before: PartitionData) -> None:
        self._aborted_left += len(before.aborted_transactions or ())

    def wait_for(self, fetch: ConsumerFetch) -> Sequence[Hashable]:
        if fetch.wait_ms <= 0:
            return ()
        self._by_key = {partition: asked for asked, (partition, _) in fetch.found.items() if partition is not None}
        return tuple(self._by_key)

    # --- the answer

    def respond(self, fetch: ConsumerFetch) -> FetchResponse:
        if self._quota is not None and (throttled := self.throttled(fetch)) is not None:
            return throttled
        found = self.all_found(fetch)
        response = self.tell(found)
        response.session_id = self.session_id(found)
        return response

    def throttled(self, fetch: ConsumerFetch) -> FetchResponse | None:
        """Return the answer without records to a consumer that is over its quota; the session does not change, so that
        the next fetch gets everything. None if the consumer may have its answer.
        """
        throttle_ms = 0 if self._quota is None else self._quota.throttle_ms(fetch.size_bytes)
        if not throttle_ms:
            return None
        session_id = 0 if self.session is None else self.session.key
        return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id, responses=[])

    def all_found(self, fetch: ConsumerFetch) -> Collection[Found]:
        """Return existing partitions before missing ones; Kafka checks the ids of all topics before it looks at
        partitions.
        """
        if not self._missing:
            return fetch.found.items()
        missing: list[Found] = list(self._missing.items())
        if self.by_id:
            missing.sort(key=lambda each: each[1][1].error_code != ErrorCode.UNKNOWN_TOPIC_ID)
        return [*fetch.found.items(), *missing]

    def tell(self, found: Iterable[Found]) -> FetchResponse:
        """Return the response with these partitions."""
        session = self.session
        news = []
        for asked, (partition, data) in found:
            if session is not None and not asked.news(data):
                continue
            news.append((asked, data))
            if data.records:
                assert partition is not None, "its records come from there"
                partition.fetch_requests += 1
                partition.sent_bytes += len(data.records)
                if session is not None:
                    session.served(asked)
            elif data.error_code:
                self._consumers.refused(asked.topic)
        return whole(news, self.by_id, 0, self._version, self._consumers.state, self._reachable)

    def session_id(self, found: Collection[Found]) -> int:
        """Return the id of the session that the request continues or opens; 0 if there is none."""
        session = self.session
        if session is None and self.request.session_epoch == INITIAL_EPOCH:
            session = self._open_session(found)
        return session.key if session is not None else 0

    def _open_session(self, found: Collection[Found]) -> FetchSession | None:
        if is_too_large(self.request):
            return None
        consumers = self._consumers
        session = consumers.sessions.open([asked for asked, _ in found], self.by_id, consumers.steady_ms())
        if session is not None:
            for asked, (_, data) in found:
                asked.news(data)
        return session
