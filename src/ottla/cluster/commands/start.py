"""What a node writes when it starts to lead the metadata journal and to serve: bootstrap, registration, elections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.cluster import features
from ottla.cluster.entities import NO_LEADER, Broker, Controller, PartitionState
from ottla.cluster.entry import Entry
from ottla.cluster.snapshot import broker_entry, config_entry, controller_entry
from ottla.cluster.view import View
from ottla.machine.kit import Result
from ottla.model.resources import Resource, ResourceType
from ottla.wire.journal import cluster_metadata as journal


@dataclass(frozen=True, slots=True)
class Activate:
    """A new leader takes over: an empty journal gets its first records, an unfinished transaction is aborted."""

    bootstrap: tuple[Entry, ...]

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        if view.state.in_transaction:
            return Result([Entry(journal.AbortTransactionRecord(reason="a new controller takes over"))])
        if view.state.features:
            return Result()
        levels = {
            entry.record.name: entry.record.feature_level
            for entry in self.bootstrap
            if isinstance(entry.record, journal.FeatureLevelRecord)
        }
        records = list(self.bootstrap)
        if levels.get(features.ELR_VERSION, 0) > 0:
            # KIP-966: with eligible leader replicas, the controller must know the cluster's min.insync.replicas.
            value = str(view.defaults.get("min.insync.replicas"))
            records.append(config_entry(Resource(ResourceType.BROKER, ""), "min.insync.replicas", value))
        if features.transactions_supported(levels.get(features.METADATA_VERSION, 0)):
            begin = journal.BeginTransactionRecord(name="Bootstrap records")
            records = [Entry(begin), *records, Entry(journal.EndTransactionRecord())]
        return Result(records)


@dataclass(frozen=True, slots=True)
class RegisterController:
    controller: Controller

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        if not features.controllers_registered(view.state.metadata_version):
            return Result()
        return Result([controller_entry(self.controller)])


@dataclass(frozen=True, slots=True)
class StartBroker:
    """Registers a broker, unfences it, and elects it wherever it is the one who has the data.

    `clean` says that it stopped in order. After a crash, what was not yet on disk is lost and the same offsets will be
    written again, so every partition it leads gets a new leader epoch: clients that read past the loss can tell.
    """

    broker: Broker
    clean: bool

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        level = view.state.metadata_version
        unfence = journal.BrokerRegistrationChangeRecord(
            broker_id=self.broker.id, broker_epoch=self.broker.epoch, fenced=-1
        )
        records = [broker_entry(self.broker._replace(fenced=True), level), Entry(unfence)]
        records.extend(self._elections(view))
        return Result(records)

    def _elections(self, view: View) -> Iterator[Entry]:
        version = features.partition_record_version(view.state.metadata_version)
        me = self.broker.id
        for topic in view.state.topics.values():
            for partition in topic.partitions:
                if partition.leader == me and self.clean:
                    continue
                if partition.leader == me or (partition.leader == NO_LEADER and _may_lead(partition, me)):
                    yield Entry(_election(topic.id, partition, me), version)


def _may_lead(partition: PartitionState, broker: int) -> bool:
    if broker in partition.isr or broker in partition.elr:
        return True
    return not partition.isr and not partition.elr and partition.last_known_elr == (broker,)


def _election(topic_id: bytes, partition: PartitionState, leader: int) -> journal.PartitionChangeRecord:
    return journal.PartitionChangeRecord(
        partition_id=partition.index,
        topic_id=topic_id,
        leader=leader,
        isr=None if leader in partition.isr else [leader],
        eligible_leader_replicas=[id for id in partition.elr if id != leader] if partition.elr else None,
        last_known_elr=[] if partition.last_known_elr else None,
    )
