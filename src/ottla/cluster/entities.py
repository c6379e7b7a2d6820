"""The entities of the cluster state (partition, topic, broker, controller), and the changes reported to its observers.

All are immutable except `Topic`, whose list of partitions changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from ottla.cluster.features import FeatureRange
from ottla.model.ids import BrokerEpoch, LeaderEpoch, PartitionEpoch
from ottla.model.resources import Resource
from ottla.wire.journal import cluster_metadata as journal

NO_LEADER = -1
# In a PartitionChangeRecord: keep the leader. Any other value, even the present leader, starts a new leader epoch.
UNCHANGED_LEADER = -2
# In place of a directory id: the broker's directories are not known (metadata.version before 3.7-IV2).
MIGRATING_DIRECTORY = bytes(16)
# The replica's broker has not chosen a directory yet. (The next id, 2, means that the replica was lost with its disk.)
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
# Ids below this one are reserved and never belong to a directory.
FIRST_DIRECTORY = bytes(15) + bytes([100])

T = TypeVar("T")


class MakeTuple(Protocol):
    def __call__(self, values: list[T], /) -> tuple[T, ...]: ...


class PartitionState(NamedTuple):
    """One partition as the controller sees it; replicas and directories run in parallel."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody wants here
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    directories: tuple[bytes, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    recovering: int = 0  # 1 after an unclean election, until the leader has recovered
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def moving(self) -> bool:
        """Whether the partition is being reassigned."""
        return bool(self.adding or self.removing)

    def changed(self, record: journal.PartitionChangeRecord, share: MakeTuple = tuple) -> PartitionState:
        """Return the state after a change; `share` makes tuples of lists."""
        elects = record.leader != UNCHANGED_LEADER
        return PartitionState(
            self.index,
            self.replicas if record.replicas is None else share(record.replicas),
            self.isr if record.isr is None else share(record.isr),
            record.leader if elects else self.leader,
            LeaderEpoch(self.leader_epoch + 1) if elects else self.leader_epoch,
            PartitionEpoch(self.partition_epoch + 1),
            self.directories if record.directories is None else share(record.directories),
            self.removing if record.removing_replicas is None else share(record.removing_replicas),
            self.adding if record.adding_replicas is None else share(record.adding_replicas),
            self.recovering if record.leader_recovery_state == -1 else record.leader_recovery_state,
            self.elr if record.eligible_leader_replicas is None else share(record.eligible_leader_replicas),
            self.last_known_elr if record.last_known_elr is None else share(record.last_known_elr),
        )

    def directory(self, broker: int) -> bytes:
        """Return the directory of the broker's replica."""
        return self.directories[self.replicas.index(broker)] if self.directories else MIGRATING_DIRECTORY


# A new partition: its index, and a state in which everything but the index is right. Equal partitions share one state.
Placed = tuple[int, PartitionState]


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


class ListenerEndpoint(NamedTuple):
    """An address that a node listens on."""

    name: str
    host: str
    port: int
    security_protocol: int  # Kafka's ids: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL


class Broker(NamedTuple):
    """A registered broker. Fenced: known, but given no leadership and shown to no client."""

    id: int
    epoch: BrokerEpoch
    incarnation_id: bytes
    endpoints: tuple[ListenerEndpoint, ...]
    features: tuple[tuple[str, FeatureRange], ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned: tuple[bytes, ...] | None = None

    @property
    def active(self) -> bool:
        """Whether the broker may lead."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def open_for_replicas(self) -> bool:
        """Whether new replicas may be placed on the broker: not while it shuts down, nor if all its directories are
        cordoned. A broker that has shut down is fenced, and expected to return like any other fenced broker.
        """
        closed = self.cordoned and set(self.directories) <= set(self.cordoned)
        return (self.fenced or not self.in_controlled_shutdown) and not closed

    def has_online(self, directory: bytes) -> bool:
        """Whether a replica in this directory can be used."""
        if directory in self.directories or not self.directories:
            return True
        return directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)

    @property
    def default_directory(self) -> bytes:
        """The directory of a new replica: known if the broker has just one, else the broker chooses later."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY


class Controller(NamedTuple):
    """A registered controller."""

    id: int
    incarnation_id: bytes
    endpoints: tuple[ListenerEndpoint, ...]
    features: tuple[tuple[str, FeatureRange], ...]
    zk_migration_ready: bool = False


# What client quotas are set for: types (user, client-id, ip) with a name each, in the order of the types. The name None
# stands for all that have no quota of their own.
QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return the entity of these types and names; if a type is given twice, the last name counts."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


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


class AclChanged(NamedTuple):
    """An access control entry was added, replaced or (new is None) removed."""

    old: journal.AccessControlEntryRecord | None
    new: journal.AccessControlEntryRecord | None


class QuotaChanged(NamedTuple):
    entity: QuotaEntity
    key: str
    value: float | None  # None: the quota was removed


Change: TypeAlias = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionChanged
    | ConfigChanged
    | FeatureChanged
    | BrokerChanged
    | AclChanged
    | QuotaChanged
)
