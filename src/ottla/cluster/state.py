"""The cluster's state: topics, partitions, configurations, brokers, features, producer ids.

Rules:
- `apply` is the only mutator, and the same on controllers and brokers: a record has one meaning.
- A record that does not fit the state (a partition of an unknown topic, an unknown record type) is a damaged journal,
  not a client's mistake: it raises `JournalError` and the node does not start.
- Records between BeginTransaction and EndTransaction take effect together at the end, or never (KIP-868).
- ACLs, SCRAM credentials and delegation tokens are kept as the records themselves, so that a journal written by a real
  Kafka loses nothing when we write a snapshot of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ottla.cluster.entities import (
    AclChanged,
    Broker,
    BrokerChanged,
    Change,
    ConfigChanged,
    Controller,
    FeatureChanged,
    PartitionChanged,
    PartitionsAdded,
    PartitionState,
    QuotaChanged,
    QuotaEntity,
    Topic,
    TopicCreated,
    TopicDeleted,
    quota_entity,
)
from ottla.cluster.features import KRAFT_VERSION, METADATA_VERSION
from ottla.cluster.partition_index import Index
from ottla.cluster.registration import endpoints_of, features_of
from ottla.cluster.token_index import TokenIndex
from ottla.model.ids import NO_BROKER_EPOCH, BrokerEpoch, PartitionEpoch
from ottla.model.limits import SHARED_TUPLES_MAX
from ottla.model.names import collision_key
from ottla.model.resources import Resource
from ottla.security.acl_entry import AclEntry
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.message import Data

T = TypeVar("T")
_NOTHING: tuple[Change, ...] = ()


class JournalError(Exception):
    """The metadata journal contains a record that contradicts the state."""


class ClusterState:
    """Read it freely; change it only through `apply`."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topic_by_id: dict[bytes, Topic] = {}
        # collision key → the topics with this key, in order of creation
        self.colliding: dict[str, tuple[str, ...]] = {}
        self.configs: dict[Resource, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.brokers: dict[int, Broker] = {}
        self.controllers: dict[int, Controller] = {}
        self.next_producer_id = 0
        self.producer_ids: journal.ProducerIdsRecord | None = None
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[bytes, journal.AccessControlEntryRecord] = {}
        self.acl_ids: dict[AclEntry, bytes] = {}  # the ids of `acls` by their content
        self.scram: dict[tuple[str, int], journal.UserScramCredentialRecord] = {}
        self.tokens: dict[str, journal.DelegationTokenRecord] = {}
        self.token_index = TokenIndex()
        self.partition_count = 0
        self.index = Index()
        self._shared: dict[tuple[object, ...], tuple[object, ...]] = {}
        # partitions whose records came before those of a lower index
        self._early: dict[bytes, dict[int, PartitionState]] = {}
        self._transaction: list[Data] | None = None
        self._appliers: dict[type, Callable[[Any], Sequence[Change]]] = {
            journal.TopicRecord: self._topic,
            journal.RemoveTopicRecord: self._remove_topic,
            journal.PartitionChangeRecord: self._partition_change,
            journal.ConfigRecord: self._config,
            journal.FeatureLevelRecord: self._feature,
            journal.RegisterBrokerRecord: self._register_broker,
            journal.UnregisterBrokerRecord: self._unregister_broker,
            journal.BrokerRegistrationChangeRecord: self._broker_change,
            journal.FenceBrokerRecord: lambda record: self._set_fenced(record.id, True),
            journal.UnfenceBrokerRecord: lambda record: self._set_fenced(record.id, False),
            journal.RegisterControllerRecord: self._register_controller,
            journal.ProducerIdsRecord: self._producer_ids,
            journal.ClientQuotaRecord: self._quota,
            journal.AccessControlEntryRecord: self._acl,
            journal.RemoveAccessControlEntryRecord: self._remove_acl,
            journal.UserScramCredentialRecord: self._scram,
            journal.RemoveUserScramCredentialRecord: self._remove_scram,
            journal.DelegationTokenRecord: self._token,
            journal.RemoveDelegationTokenRecord: self._remove_token,
            journal.ClearElrRecord: self._clear_elr,
            journal.NoOpRecord: _ignore,
            journal.ZkMigrationStateRecord: _ignore,  # ZooKeeper is gone; old journals still mention it
        }

    def copy(self) -> ClusterState:
        """Return a copy that can be changed independently. Immutable values are shared; only containers are copied."""
        new = ClusterState()
        for name, topic in self.topics.items():
            new.topics[name] = new.topic_by_id[topic.id] = Topic(name, topic.id, topic.partitions.copy())
        new.configs = {resource: values.copy() for resource, values in self.configs.items()}
        new.quotas = {entity: values.copy() for entity, values in self.quotas.items()}
        for name in ("colliding", "features", "brokers", "controllers", "acls", "acl_ids", "scram", "tokens"):
            setattr(new, name, getattr(self, name).copy())
        new.next_producer_id, new.producer_ids = self.next_producer_id, self.producer_ids
        new.partition_count = self.partition_count
        new.index = self.index.copy()
        new.token_index = self.token_index.copy()
        new._shared = self._shared  # a cache of equal tuples is valid for both
        new._early = {topic_id: early.copy() for topic_id, early in self._early.items()}
        new._transaction = None if self._transaction is None else self._transaction.copy()
        return new

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id; None if there is none."""
        topic = self.topic_by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition(self, topic_id: bytes, index: int) -> PartitionState | None:
        topic = self.topic_by_id.get(topic_id)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def broker_epoch(self, broker_id: int) -> BrokerEpoch:
        """Return the broker's epoch; -1 if it is not registered."""
        broker = self.brokers.get(broker_id)
        return NO_BROKER_EPOCH if broker is None else broker.epoch

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, 0)

    @property
    def in_transaction(self) -> bool:
        """Whether the journal ended inside a transaction; a new writer has to abort it."""
        return self._transaction is not None

    def config(self, type: int, name: str) -> dict[str, str]:
        """Return the settings of a resource; empty if there are none."""
        return self.configs.get(Resource(type, name), {})

    def apply(self, record: Data) -> Sequence[Change]:
        """Apply one journal record and return what it changed."""
        return tuple(self.apply_all((record,)))

    def apply_all(self, records: Iterable[Data]) -> list[Change]:
        """`apply` for many records; consecutive new partitions of a topic are reported as one change."""
        return self.apply_effective(self.effective(records))

    def effective(self, records: Iterable[Data]) -> list[Data]:
        """Return the records that take effect now: those of a transaction do when it ends. Pass each record exactly
        once.
        """
        found: list[Data] = []
        for record in records:
            kind = type(record)
            if kind is journal.BeginTransactionRecord:
                if self._transaction is not None:
                    raise JournalError("a transaction begins inside another")
                self._transaction = []
            elif self._transaction is None:
                found.append(record)
            elif kind is journal.AbortTransactionRecord:
                self._transaction = None
            elif kind is journal.EndTransactionRecord:
                found.extend(self._transaction)
                self._transaction = None
            else:
                self._transaction.append(record)
        return found

    def apply_effective(
        self, records: Sequence[Data], made: Mapping[int, PartitionState] | None = None
    ) -> list[Change]:
        """Apply records that take effect. `made` are states of new partitions that were made before, by the position of
        their record in `records`.
        """
        changes: list[Change] = []
        at = 0
        while at < len(records):
            record = records[at]
            if type(record) is journal.PartitionRecord:
                run = _run(records, at)
                states = [
                    (made.get(place) if made is not None else None) or self.new_partition(each)
                    for place, each in enumerate(run, at)
                ]
                changes.extend(self._partitions(record.topic_id, states))
                at += len(run)
                continue
            applier = self._appliers.get(type(record))
            if applier is None:
                raise JournalError(f"{type(record).__name__} cannot stand here")
            changes.extend(applier(record))
            at += 1
        return changes

    # --- topics and partitions -----------------------------------------------------------------------------------

    def _topic(self, record: journal.TopicRecord) -> Sequence[Change]:
        if record.name in self.topics:
            raise JournalError(f"topic {record.name} is created twice")
        topic = Topic(record.name, record.topic_id)
        self.topics[topic.name] = topic
        self.topic_by_id[topic.id] = topic
        key = collision_key(topic.name)
        self.colliding[key] = (*self.colliding.get(key, ()), topic.name)
        return (TopicCreated(topic),)

    def _remove_topic(self, record: journal.RemoveTopicRecord) -> Sequence[Change]:
        topic = self.topic_by_id.pop(record.topic_id, None)
        if topic is None:
            raise JournalError(f"unknown topic {record.topic_id.hex()} is removed")
        del self.topics[topic.name]
        key = collision_key(topic.name)
        self.colliding[key] = tuple(name for name in self.colliding[key] if name != topic.name)
        if not self.colliding[key]:
            del self.colliding[key]
        self.configs.pop(Resource(2, topic.name), None)
        self._early.pop(topic.id, None)
        self.partition_count -= len(topic.partitions)
        self.index.remove_topic(topic.id, len(topic.partitions))
        return (TopicDeleted(topic),)

    def _partition(self, topic: Topic, state: PartitionState) -> Sequence[Change]:
        partitions = topic.partitions
        if state.index == len(partitions):
            partitions.append(state)
            self.partition_count += 1
            self.index.move(topic.id, None, state)
            if topic.id in self._early:
                return (PartitionsAdded(topic, (state, *self._take_early(topic))),)
            return (PartitionsAdded(topic, (state,)),)
        if 0 <= state.index < len(partitions):
            old, partitions[state.index] = partitions[state.index], state
            self.index.move(topic.id, old, state)
            return (PartitionChanged(topic, old, state),)
        self._early.setdefault(topic.id, {})[state.index] = state
        return _NOTHING

    def _partitions(self, topic_id: bytes, states: Sequence[PartitionState]) -> Sequence[Change]:
        """Add or replace partitions of one topic. Those that continue its list, as nearly all do, are added
        together.
        """
        topic = self.topic_by_id.get(topic_id)
        if topic is None:
            raise JournalError(f"partition {states[0].index} of unknown topic {topic_id.hex()}")
        if topic.id in self._early:
            return [change for state in states for change in self._partition(topic, state)]
        first = len(topic.partitions)
        count = next((number for number, state in enumerate(states) if state.index != first + number), len(states))
        added = states[:count]
        topic.partitions.extend(added)
        self.partition_count += count
        self.index.add_all(topic.id, added)
        changes: list[Change] = [PartitionsAdded(topic, tuple(added))] if added else []
        for state in states[count:]:
            changes.extend(self._partition(topic, state))
        return changes

    def new_partition(self, record: journal.PartitionRecord) -> PartitionState:
        """Return the state that a partition's record describes, without applying it."""
        share = self._share
        return PartitionState(
            record.partition_id,
            share(record.replicas),
            share(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            share(record.directories) if record.directories else (),
            share(record.removing_replicas) if record.removing_replicas else (),
            share(record.adding_replicas) if record.adding_replicas else (),
            record.leader_recovery_state,
            share(record.eligible_leader_replicas) if record.eligible_leader_replicas else (),
            share(record.last_known_elr) if record.last_known_elr else (),
        )

    def _share(self, values: Sequence[T]) -> tuple[T, ...]:
        """Return one tuple object for all equal values: very many partitions have the same few replicas and
        directories.
        """
        found = tuple(values)
        known = self._shared.get(found)
        if known is not None:
            return known  # type: ignore[return-value]  # equal values are of one type
        if len(self._shared) < SHARED_TUPLES_MAX:
            self._shared[found] = found
        return found

    def _take_early(self, topic: Topic) -> list[PartitionState]:
        early = self._early[topic.id]
        taken: list[PartitionState] = []
        while (state := early.pop(len(topic.partitions), None)) is not None:
            topic.partitions.append(state)
            self.index.move(topic.id, None, state)
            taken.append(state)
        self.partition_count += len(taken)
        if not early:
            del self._early[topic.id]
        return taken

    def _partition_change(self, record: journal.PartitionChangeRecord) -> Sequence[Change]:
        topic = self.topic_by_id.get(record.topic_id)
        if topic is None or not 0 <= record.partition_id < len(topic.partitions):
            raise JournalError(f"unknown partition {record.topic_id.hex()}-{record.partition_id} changes")
        old = topic.partitions[record.partition_id]
        new = old.changed(record, self._share)
        topic.partitions[record.partition_id] = new
        self.index.move(topic.id, old, new)
        return (PartitionChanged(topic, old, new),)

    def _clear_elr(self, record: journal.ClearElrRecord) -> Sequence[Change]:
        names = [record.topic_name] if record.topic_name else list(self.topics)
        changes: list[Change] = []
        for topic in (self.topics[name] for name in names):
            for old in topic.partitions:
                if old.elr or old.last_known_elr:
                    epoch = PartitionEpoch(old.partition_epoch + 1)
                    new = old._replace(elr=(), last_known_elr=(), partition_epoch=epoch)
                    topic.partitions[old.index] = new
                    self.index.move(topic.id, old, new)
                    changes.append(PartitionChanged(topic, old, new))
        return changes

    # --- configurations, features, ids -------------------------------------------------------------------------------

    def _config(self, record: journal.ConfigRecord) -> Sequence[Change]:
        resource = Resource(record.resource_type, record.resource_name)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
        elif resource in self.configs:
            self.configs[resource].pop(record.name, None)
            if not self.configs[resource]:
                del self.configs[resource]
        return (ConfigChanged(resource, record.name, record.value),)

    def _feature(self, record: journal.FeatureLevelRecord) -> Sequence[Change]:
        # a level of the quorum, in control records; journals of older Kafkas have it here, too
        if record.name == KRAFT_VERSION:
            return _NOTHING
        if record.feature_level == 0 and record.name != METADATA_VERSION:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        return (FeatureChanged(record.name, record.feature_level),)

    def _producer_ids(self, record: journal.ProducerIdsRecord) -> Sequence[Change]:
        if record.next_producer_id <= self.next_producer_id and self.producer_ids is not None:
            raise JournalError(f"producer ids go back from {self.next_producer_id} to {record.next_producer_id}")
        self.next_producer_id = record.next_producer_id
        self.producer_ids = record
        return _NOTHING

    # --- brokers and controllers -------------------------------------------------------------------------------------

    def _register_broker(self, record: journal.RegisterBrokerRecord) -> Sequence[Change]:
        return self._set_broker(
            Broker(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                endpoints=endpoints_of(record.end_points),
                features=features_of(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                directories=tuple(record.log_dirs),
                cordoned=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
            )
        )

    def _set_broker(self, new: Broker) -> Sequence[Change]:
        old = self.brokers.get(new.id)
        self.brokers[new.id] = new
        return (BrokerChanged(old, new),)

    def _unregister_broker(self, record: journal.UnregisterBrokerRecord) -> Sequence[Change]:
        return (BrokerChanged(self.brokers.pop(record.broker_id, None), None),)

    def _set_fenced(self, broker_id: int, fenced: bool) -> Sequence[Change]:
        return self._set_broker(self._broker(broker_id)._replace(fenced=fenced))

    def _broker_change(self, record: journal.BrokerRegistrationChangeRecord) -> Sequence[Change]:
        broker = self._broker(record.broker_id)
        if broker.epoch != record.broker_epoch:
            raise JournalError(f"broker {broker.id} changes at epoch {record.broker_epoch}, it has {broker.epoch}")
        if record.fenced:
            broker = broker._replace(fenced=record.fenced == 1)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=record.in_controlled_shutdown == 1)
        if record.log_dirs:
            broker = broker._replace(directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned=tuple(record.cordoned_log_dirs))
        return self._set_broker(broker)

    def _broker(self, broker_id: int) -> Broker:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise JournalError(f"unknown broker {broker_id} changes")
        return broker

    def _register_controller(self, record: journal.RegisterControllerRecord) -> Sequence[Change]:
        self.controllers[record.controller_id] = Controller(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=endpoints_of(record.end_points),
            features=features_of(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )
        return _NOTHING

    # --- access control

    def _acl(self, record: journal.AccessControlEntryRecord) -> Sequence[Change]:
        old = self._forget_acl(record.id)
        self.acls[record.id] = record
        self.acl_ids[AclEntry.of(record)] = record.id
        return (AclChanged(old, record),)

    def _remove_acl(self, record: journal.RemoveAccessControlEntryRecord) -> Sequence[Change]:
        return (AclChanged(self._forget_acl(record.id), None),)

    def _forget_acl(self, id: bytes) -> journal.AccessControlEntryRecord | None:
        old = self.acls.pop(id, None)
        if old is not None and self.acl_ids.get(AclEntry.of(old)) == id:
            del self.acl_ids[AclEntry.of(old)]
        return old

    # --- quotas and credentials

    def _quota(self, record: journal.ClientQuotaRecord) -> Sequence[Change]:
        entity = quota_entity((part.entity_type, part.entity_name) for part in record.entity)
        if not record.remove:
            self.quotas.setdefault(entity, {})[record.key] = record.value
        elif entity in self.quotas:
            self.quotas[entity].pop(record.key, None)
            if not self.quotas[entity]:
                del self.quotas[entity]
        return (QuotaChanged(entity, record.key, None if record.remove else record.value),)

    def _scram(self, record: journal.UserScramCredentialRecord) -> Sequence[Change]:
        self.scram[record.name, record.mechanism] = record
        return _NOTHING

    def _remove_scram(self, record: journal.RemoveUserScramCredentialRecord) -> Sequence[Change]:
        self.scram.pop((record.name, record.mechanism), None)
        return _NOTHING

    def _token(self, record: journal.DelegationTokenRecord) -> Sequence[Change]:
        self.tokens[record.token_id] = record
        self.token_index.put(record.token_id, record.owner)
        return _NOTHING

    def _remove_token(self, record: journal.RemoveDelegationTokenRecord) -> Sequence[Change]:
        self.tokens.pop(record.token_id, None)
        self.token_index.remove(record.token_id)
        return _NOTHING


def _ignore(_: object) -> Sequence[Change]:
    return _NOTHING


def _run(records: Sequence[Data], at: int) -> list[journal.PartitionRecord]:
    """Return the new partitions of one topic whose records follow each other from `at` on."""
    run: list[journal.PartitionRecord] = []
    for place in range(at, len(records)):
        record = records[place]
        if type(record) is not journal.PartitionRecord or (run and record.topic_id != run[0].topic_id):
            break
        run.append(record)
    return run
