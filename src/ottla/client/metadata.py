"""A client's metadata of the cluster: brokers, topics, leaders of partitions.

Pure data and its cache; `client.cluster` requests metadata and updates it.

Rules:
- A topic is unknown, fresh or stale. Every answer that names the topic replaces its entry as a whole and makes it
  fresh. An error that says that the leaders are out of date makes it stale: its id and its number of partitions are
  still good for choosing a partition, but its leaders have to be requested before the next request to them.
- Only an answer that says that the topic does not exist (or may not be seen) makes it unknown again.
- An older leader epoch never replaces a newer one, not even a stale one: the next broker that is asked may lag behind.
- An answer that says "not leader" may name the leader (KIP-951): such a hint changes one partition, if it is new.
- A topic that was just created counts as existing, though brokers that lag behind may not know it yet.
- The cache holds only topics that were requested; above a bound, the least recently refreshed is dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from ottla.client.connection import Address
from ottla.client.errors import error_code
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, LeaderEpoch, TopicPartition
from ottla.wire.messages.topics.metadata import MetadataResponse

NO_LEADER = -1
_NEW_S = 10  # after so long every healthy broker knows a new topic
_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)  # retriable, because brokers may lag behind


class AdvertisedBroker(NamedTuple):
    """One broker as the cluster advertises it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False  # registered, but fenced; only in answers to requests for such brokers

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class Endpoint(Protocol):
    """A broker as answers to Produce and Fetch describe it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Leadership(Protocol):
    """A leader as answers to Produce and Fetch describe it; -1 for none."""

    leader_id: int
    leader_epoch: LeaderEpoch


class NoPartition(ApiError):
    """The topic has fewer partitions, as far as is known: this one may have been added a moment ago."""

    def __init__(self, topic: str, partition_count: int, index: int) -> None:
        why = f"topic {topic!r} has {partition_count} partitions, there is no {index}"
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Metadata of one partition."""

    index: int
    leader: int
    leader_epoch: LeaderEpoch
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


def replicas_behind(replicas: Iterable[int], isr: Iterable[int], adding: Iterable[int] = ()) -> frozenset[int]:
    """Return the replicas that are not in sync; a partition that has any is under-replicated.

    Replicas that a reassignment is adding do not count: they are on their way, and nothing has failed.
    """
    return frozenset(replicas) - frozenset(isr) - frozenset(adding)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """Metadata of one topic; `partitions` are in index order."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]
    fetched_at_s: float = 0.0

    @property
    def partition_count(self) -> int:
        return len(self.partitions)

    def partition(self, index: int) -> PartitionInfo | None:
        if 0 <= index < len(self.partitions) and self.partitions[index].index == index:
            return self.partitions[index]
        return next((each for each in self.partitions if each.index == index), None)

    def leader(self, index: int) -> tuple[int, LeaderEpoch]:
        """Return (node id, leader epoch) of a partition's leader; raise LEADER_NOT_AVAILABLE while it has none."""
        info = self.partition(index)
        if info is None or info.leader == NO_LEADER:
            raise self._without_leader(index, info)
        return info.leader, info.leader_epoch

    def trouble(self, index: int) -> ApiError | None:
        """Return the error because of which no request can be sent to a partition's leader, or None."""
        info = self.partition(index)
        return self._without_leader(index, info) if info is None or info.leader == NO_LEADER else None

    def _without_leader(self, index: int, info: PartitionInfo | None) -> ApiError:
        if not self.partitions:
            return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {self.name!r} has no partitions yet")
        if info is None:
            return NoPartition(self.name, self.partition_count, index)
        return ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{TopicPartition(self.name, index)} has no leader")


@dataclass(slots=True)
class Metadata:
    """The cache of metadata."""

    brokers: dict[int, AdvertisedBroker] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    _stale: set[str] = field(default_factory=set)  # topics whose leaders have to be requested again
    _made_at_s: dict[str, float] = field(default_factory=dict)  # in order of time

    def update(self, answer: MetadataResponse, now_s: float) -> dict[str, ErrorCode]:
        """Take over an answer; return the topics that came with an error."""
        if answer.brokers:
            self.brokers = {
                each.node_id: AdvertisedBroker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers
            }
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        errors: dict[str, ErrorCode] = {}
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code:
                code = errors[name] = error_code(topic.error_code)
                if code.retriable and code not in _GONE:
                    self.mark_stale(name)
                else:
                    self._drop(name)
                continue
            known = self.topics.pop(name, None)  # popped, so that the dict is in the order of refreshing
            self.topics[name] = _merge(known, _topic_info(topic, now_s))
            self._stale.discard(name)
        while len(self.topics) > limits.CLIENT_TOPICS_MAX:
            self._drop(next(iter(self.topics)))
        return errors

    def hint(self, partition: TopicPartition, named: Leadership, endpoints: Iterable[Endpoint]) -> bool:
        """Take over the leader that an answer names; return False if there is none, or nothing new."""
        leader, leader_epoch = named.leader_id, named.leader_epoch
        topic = self.topics.get(partition.topic)
        known = topic.partition(partition.partition) if topic is not None else None
        if topic is None or known is None or leader < 0 or leader_epoch <= known.leader_epoch:
            return False
        for each in endpoints:
            if each.node_id == leader:
                self.brokers[leader] = AdvertisedBroker(each.node_id, each.host, each.port, each.rack)
        if leader not in self.brokers:
            return False
        fresh = replace(known, leader=leader, leader_epoch=leader_epoch)
        partitions = tuple(fresh if each is known else each for each in topic.partitions)
        self.topics[partition.topic] = replace(topic, partitions=partitions)
        return True

    def made(self, topic: str, now_s: float) -> None:
        """Note that the controller has created the topic."""
        self._made_at_s.pop(topic, None)
        self._made_at_s[topic] = now_s
        while not self.is_new(oldest := next(iter(self._made_at_s)), now_s):
            del self._made_at_s[oldest]

    def deleted(self, topic: str) -> None:
        self._drop(topic)
        self._made_at_s.pop(topic, None)

    def is_new(self, topic: str, now_s: float) -> bool:
        """Return whether the topic was created so recently that a broker may not know it yet."""
        made_at_s = self._made_at_s.get(topic)
        return made_at_s is not None and now_s - made_at_s < _NEW_S

    def mark_stale(self, topic: str) -> None:
        """Mark the topic's leaders or partitions as possibly changed: they are requested before the next request to
        them.
        """
        if topic in self.topics:
            self._stale.add(topic)

    def fresh(self, topic: str) -> TopicInfo | None:
        """Return the topic's metadata, or None if it is unknown or stale."""
        return None if topic in self._stale else self.topics.get(topic)

    def _drop(self, topic: str) -> None:
        self.topics.pop(topic, None)
        self._stale.discard(topic)


def _topic_info(topic: MetadataResponse.Topic, now_s: float) -> TopicInfo:
    partitions = [
        PartitionInfo(
            index=each.partition_index,
            leader=each.leader_id,
            leader_epoch=each.leader_epoch,
            replicas=tuple(each.replica_nodes),
            isr=tuple(each.isr_nodes),
            offline=tuple(each.offline_replicas),
            error=error_code(each.error_code),
        )
        for each in topic.partitions
    ]
    partitions.sort(key=lambda each: each.index)
    return TopicInfo(topic.name or "", topic.topic_id, topic.is_internal, tuple(partitions), now_s)


def _merge(known: TopicInfo | None, fresh: TopicInfo) -> TopicInfo:
    """Merge two views of a topic, with the newer leader epoch of each partition: a broker that lags behind may still
    name the former leader.
    """
    if known is None or known.topic_id != fresh.topic_id or known.topic_id == NO_ID:
        return fresh
    partitions = []
    for new in fresh.partitions:
        old = known.partition(new.index)
        partitions.append(old if old is not None and old.leader_epoch > new.leader_epoch >= 0 else new)
    return TopicInfo(fresh.name, fresh.topic_id, fresh.is_internal, tuple(partitions), fresh.fetched_at_s)
