"""What the cluster state consists of, and the changes its observers hear of.

Everything here is immutable but `Topic`, which has identity: partitions come and go under it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.cluster.features import Range
from ottla.model.resources import Resource

NO_LEADER = -1
# In place of a directory id: the replica's broker has not chosen one yet.
UNASSIGNED_DIRECTORY = bytes(16)


class PartitionState(NamedTuple):
    """One partition as the controller sees it; replicas and directories run in parallel."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody wants here
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    recovering: int = 0  # 1 after an unclean election, until the leader has recovered
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class Topic:
    """A topic and its partitions, in order of their index."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, topic_id: bytes, partitions: list[PartitionState] | None = None) -> None:
        self.name = name
        self.id = topic_id
        self.partitions = partitions if partitions is not None else []

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topic):
            return NotImplemented
        return (self.name, self.id, self.partitions) == (other.name, other.id, other.partitions)

    __hash__ = None  # type: ignore[assignment]  # partitions change

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {self.id.hex()}, {len(self.partitions)} partitions)"


class Endpoint(NamedTuple):
    """Where a node listens."""

    name: str
    host: str
    port: int
    security_protocol: int  # Kafka's ids: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL


class Broker(NamedTuple):
    """A registered broker. Fenced: known, but given no leadership and shown to no client."""

    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, Range], ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned: tuple[bytes, ...] | None = None


class Controller(NamedTuple):
    """A registered controller."""

    id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, Range], ...]
    zk_migration_ready: bool = False


class TopicCreated(NamedTuple):
    """Its partitions follow as PartitionsAdded."""

    topic: Topic


class TopicDeleted(NamedTuple):
    topic: Topic


class PartitionsAdded(NamedTuple):
    topic: Topic
    partitions: tuple[PartitionState, ...]


class PartitionChanged(NamedTuple):
    topic: Topic
    old: PartitionState
    new: PartitionState


class ConfigChanged(NamedTuple):
    resource: Resource
    name: str
    value: str | None  # None: back to the default


class FeatureChanged(NamedTuple):
    name: str
    level: int


class BrokerChanged(NamedTuple):
    """A broker was registered, fenced, unfenced or (new is None) unregistered."""

    old: Broker | None
    new: Broker | None


Change: TypeAlias = (
    TopicCreated | TopicDeleted | PartitionsAdded | PartitionChanged | ConfigChanged | FeatureChanged | BrokerChanged
)
