"""A running cluster as the doctor sees it, and the declared checks of it.

Everything is read before the checks are made, each part by itself: what one part lacks (a right, an API of a real
Kafka, a broker that is away) costs only the checks that need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ottla.client.admin.groups import GroupListing
from ottla.client.admin.nodes import Feature, LogDir
from ottla.client.admin.replicas import Reassignment
from ottla.client.admin.topics import ActiveProducer
from ottla.client.admin.voters import QuorumState
from ottla.client.connection import VersionRange
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.metadata import AdvertisedBroker, PartitionInfo, TopicInfo
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.throttle import Throttles
from ottla.operations.doctor.check import Checks, UnseenError
from ottla.operations.doctor.settings.node_settings import SettingsSeen

T = TypeVar("T")

CLUSTER = Checks["ClusterSeen"](
    "A running cluster", "Made unless `--config` or `--data` is given alone; also against a real Kafka."
)


@dataclass(frozen=True, slots=True)
class SeenPart(Generic[T]):
    """What was read, or why it was not; `is_refused` if the right to read it is missing."""

    value: T | None
    reason: str = ""
    is_refused: bool = False

    def get(self) -> T:
        """Raises UnseenError if it was not read."""
        if self.value is None:
            raise UnseenError(self.reason)
        return self.value


class GroupLag(NamedTuple):
    """How far a group is behind in one partition. `waited_s` is the age of the first record that it has not read, and
    `later` how many records it was behind when it was looked at again; None if that is not known.
    """

    group: str
    partition: TopicPartition
    committed: int
    records: int
    waited_s: float | None = None
    later: int | None = None


class SeenTransaction(NamedTuple):
    """A transaction that a coordinator knows to be open."""

    transactional_id: str
    producer_id: int
    started_ms: int | None
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The parts; what ends in `_later` was read again after the time of the sample. The quorum was read between
    `asked_ms` and `now_ms`, by this machine's clock.
    """

    asked_ms: int
    now_ms: int
    brokers: tuple[AdvertisedBroker, ...]
    unreachable: Mapping[int, str]
    quorum: SeenPart[QuorumState]
    versions: SeenPart[dict[int, dict[int, VersionRange]]]
    features: SeenPart[dict[int, list[Feature]]]
    settings: SeenPart[dict[int, SettingsSeen]]
    topics: SeenPart[list[TopicInfo]]
    topic_settings: SeenPart[dict[str, dict[str, str]]]
    share_letters: SeenPart[frozenset[str]]  # the topics that share groups name for dead letters
    moves: SeenPart[list[Reassignment]]
    moves_later: SeenPart[list[Reassignment]]
    throttles: SeenPart[Throttles]
    disks: SeenPart[dict[int, list[LogDir]]]
    disks_later: SeenPart[dict[int, list[LogDir]]]
    bounds: SeenPart[dict[TopicPartition, PartitionBounds]]
    stable_ends: SeenPart[dict[TopicPartition, int]]
    last_times: SeenPart[dict[TopicPartition, int]]
    groups: SeenPart[list[GroupListing]]
    groups_later: SeenPart[list[GroupListing]]
    lags: SeenPart[list[GroupLag]]
    producers: SeenPart[dict[TopicPartition, list[ActiveProducer]]]
    producers_later: SeenPart[dict[TopicPartition, list[ActiveProducer]]]
    transactions: SeenPart[list[SeenTransaction]]
    transactions_later: SeenPart[list[SeenTransaction]]
    subjects: SeenPart[list[str]]
    has_registry: bool

    def partitions(self) -> list[tuple[TopicPartition, PartitionInfo]]:
        """All partitions of all topics."""
        return [
            (TopicPartition(topic.name, each.index), each) for topic in self.topics.get() for each in topic.partitions
        ]

    def setting(self, topic: str, name: str) -> str:
        """The value of a topic's setting. Raises UnseenError if it is not known."""
        value = self.topic_settings.get().get(topic, {}).get(name)
        if value is None:
            raise UnseenError(f"{name} of topic {topic} is not known")
        return value

    @property
    def present(self) -> list[AdvertisedBroker]:
        """The brokers that are not fenced."""
        return [each for each in self.brokers if not each.is_fenced]
