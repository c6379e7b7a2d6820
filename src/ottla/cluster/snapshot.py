"""The state as records: the content of a snapshot file, which gives the same state when it is applied to an empty one.

The order is Kafka's: features first, because they decide the versions of the other records. Fields that a record's
version cannot hold are left out of the record object, too: so the active controller, which applies the object, and the
nodes that read its bytes get the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.cluster import features
from ottla.cluster.entities import Broker, Controller, PartitionState, Placed, QuotaEntity, Topic
from ottla.cluster.entry import BODY_AT, MetadataEntry, encode
from ottla.cluster.registration import list_endpoints, list_features
from ottla.cluster.state import ClusterState
from ottla.model.resources import Resource
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.message import fields


def snapshot(state: ClusterState) -> Iterator[MetadataEntry]:
    """Yield every record needed to build `state` again."""
    level = state.metadata_version
    if features.METADATA_VERSION in state.features:
        yield feature(features.METADATA_VERSION, level)
    for name, value in state.features.items():
        if name != features.METADATA_VERSION:
            yield feature(name, value)
    for controller in state.controllers.values():
        yield controller_entry(controller)
    for broker in state.brokers.values():
        yield broker_entry(broker, level)
    for topic in state.topics.values():
        yield from _topic(topic, level)
    for resource, values in state.configs.items():
        for name, text in values.items():
            yield config_entry(resource, name, text)
    yield from _others(state)


def feature(name: str, level: int) -> MetadataEntry:
    return MetadataEntry(journal.FeatureLevelRecord(name=name, feature_level=level))


def config_entry(resource: Resource, name: str, value: str | None) -> MetadataEntry:
    """Return the record that sets one setting, or (None) removes its value."""
    return MetadataEntry(
        journal.ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
    )


def quota_entry(entity: QuotaEntity, key: str, value: float | None) -> MetadataEntry:
    """Return the record that sets one quota, or (None) removes it."""
    quota = journal.ClientQuotaRecord
    parts = [quota.EntityData(entity_type=type, entity_name=name) for type, name in entity]
    return MetadataEntry(quota(entity=parts, key=key, value=0.0 if value is None else value, remove=value is None))


def partition_entry(topic_id: bytes, state: PartitionState, metadata_version: int) -> MetadataEntry:
    """Return the record that creates a partition in this state."""
    return MetadataEntry(
        journal.PartitionRecord(
            partition_id=state.index,
            topic_id=topic_id,
            replicas=list(state.replicas),
            isr=list(state.isr),
            removing_replicas=list(state.removing),
            adding_replicas=list(state.adding),
            leader=state.leader,
            leader_recovery_state=state.recovering,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            directories=list(state.directories) if metadata_version >= features.DIRECTORIES else [],
            eligible_leader_replicas=list(state.elr) or None,
            last_known_elr=list(state.last_known_elr) or None,
        ),
        features.partition_record_version(metadata_version),
    )


def new_partition_entries(topic_id: bytes, placed: Iterable[Placed], metadata_version: int) -> Iterator[MetadataEntry]:
    """Yield `partition_entry` for many new partitions. Partitions that share a state object are encoded once, but for
    their index.
    """
    version = features.partition_record_version(metadata_version)
    alike: dict[int, tuple[PartitionState, dict[str, Any], bytes, bytes]] = {}  # by the id() of their state
    for index, state in placed:
        known = alike.get(id(state))
        if known is None:
            first = partition_entry(topic_id, state, metadata_version)
            value = encode(first)
            values = {field.name: getattr(first.record, field.name) for field in fields(journal.PartitionRecord)}
            del values["partition_id"]
            # the index is the first field
            known = alike[id(state)] = state, values, value[:BODY_AT], value[BODY_AT + 4 :]
        _, values, before, behind = known
        record = journal.PartitionRecord(partition_id=index, **values)
        yield MetadataEntry(record, version, before + index.to_bytes(4, "big") + behind)


def broker_entry(broker: Broker, metadata_version: int) -> MetadataEntry:
    """Return the record that registers a broker."""
    record = journal.RegisterBrokerRecord
    return MetadataEntry(
        record(
            broker_id=broker.id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=list_endpoints(record.BrokerEndpoint, broker.endpoints),
            features=list_features(record.BrokerFeature, broker.features),
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=list(broker.directories) if metadata_version >= features.DIRECTORIES else [],
            cordoned_log_dirs=None if metadata_version < features.CORDONED else _listed(broker.cordoned),
        ),
        features.broker_record_version(metadata_version),
    )


def controller_entry(controller: Controller) -> MetadataEntry:
    """Return the record that registers a controller."""
    record = journal.RegisterControllerRecord
    return MetadataEntry(
        record(
            controller_id=controller.id,
            incarnation_id=controller.incarnation_id,
            zk_migration_ready=controller.zk_migration_ready,
            end_points=list_endpoints(record.ControllerEndpoint, controller.endpoints),
            features=list_features(record.ControllerFeature, controller.features),
        )
    )


def _listed(ids: tuple[bytes, ...] | None) -> list[bytes] | None:
    return None if ids is None else list(ids)


def _topic(topic: Topic, level: int) -> Iterator[MetadataEntry]:
    yield MetadataEntry(journal.TopicRecord(name=topic.name, topic_id=topic.id))
    for state in topic.partitions:
        yield partition_entry(topic.id, state, level)


def _others(state: ClusterState) -> Iterator[MetadataEntry]:
    for entity, limits in state.quotas.items():
        for key, value in limits.items():
            yield quota_entry(entity, key, value)
    if state.producer_ids is not None:
        yield MetadataEntry(state.producer_ids)
    for records in (state.acls, state.scram, state.tokens):
        yield from map(MetadataEntry, records.values())
