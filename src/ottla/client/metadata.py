"""What a client knows of the cluster: brokers, topics, who leads which partition.

Pure data and its cache; `client.cluster` asks the brokers and feeds it.

Rules:
- A topic entry is replaced as a whole by every answer that names the topic, and forgotten when an error says that it is
  out of date. An older leader epoch never replaces a newer one.
- The cache holds only topics that somebody asked for, least recently refreshed first out above a bound.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.client.connection import Address
from ottla.client.errors import error_code
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.wire.messages.metadata import MetadataResponse

NO_LEADER = -1


class Broker(NamedTuple):
    """One broker as the cluster advertises it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False  # registered, but not part of the cluster now; only where somebody asked for such

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition as Metadata describes it."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic as Metadata describes it; `partitions` are in index order."""

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


@dataclass(slots=True)
class Metadata:
    """The cache."""

    brokers: dict[int, Broker] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: dict[str, TopicInfo] = field(default_factory=dict)

    def update(self, answer: MetadataResponse, now_s: float) -> dict[str, ErrorCode]:
        """Take over an answer; the result has the topics that came with an error."""
        if answer.brokers:
            self.brokers = {
                each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers
            }
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        errors: dict[str, ErrorCode] = {}
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code:
                errors[name] = error_code(topic.error_code)
                self.topics.pop(name, None)
                continue
            known = self.topics.pop(name, None)  # popped, so that the order of the dict is the order of refreshing
            self.topics[name] = _merge(known, _topic_info(topic, now_s))
        while len(self.topics) > limits.CLIENT_TOPICS_MAX:
            del self.topics[next(iter(self.topics))]
        return errors

    def forget(self, topic: str) -> None:
        self.topics.pop(topic, None)


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
    """A broker that lags behind may still name the former leader: keep what has the newer epoch."""
    if known is None or known.topic_id != fresh.topic_id or known.topic_id == NO_ID:
        return fresh
    partitions = []
    for new in fresh.partitions:
        old = known.partition(new.index)
        partitions.append(old if old is not None and old.leader_epoch > new.leader_epoch >= 0 else new)
    return TopicInfo(fresh.name, fresh.topic_id, fresh.is_internal, tuple(partitions), fresh.fetched_at_s)
