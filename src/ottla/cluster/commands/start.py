"""Commands of a node that becomes the active controller or starts as its own broker: bootstrap, registration,
elections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.cluster import features
from ottla.cluster.commands.delegation_tokens import expiry_checks
from ottla.cluster.commands.elect_leaders import periodic
from ottla.cluster.commands.fence import greet
from ottla.cluster.commands.idle import idle
from ottla.cluster.entities import NO_LEADER, Broker, Controller, PartitionState, Topic
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.leader_election import Elections, Wish
from ottla.cluster.sessions import Gone, no_session
from ottla.cluster.snapshot import broker_entry, config_entry, controller_entry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.model.settings.replication import MIN_INSYNC_REPLICAS
from ottla.wire.journal import cluster_metadata as journal


class Activate(NamedTuple):
    """A new active controller takes over: it writes the first records of an empty journal, aborts an unfinished
    transaction, gives every broker a whole session, and starts the periodic work.
    """

    bootstrap: tuple[MetadataEntry, ...]

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
        timers, notes = greet(view, now_ms)
        timers += [*periodic(view, now_ms), *idle(view, now_ms), *expiry_checks(view, now_ms)]
        first: list[MetadataEntry] = []
        if view.state.in_transaction:
            first.append(MetadataEntry(journal.AbortTransactionRecord(reason="a new controller takes over")))
        if view.state.features:
            return Result(first, timers=timers, notes=notes)
        levels = {
            entry.record.name: entry.record.feature_level
            for entry in self.bootstrap
            if isinstance(entry.record, journal.FeatureLevelRecord)
        }
        records = list(self.bootstrap)
        if levels.get(features.ELR_VERSION, 0) > 0:
            # KIP-966: with eligible leader replicas, the controller must know the cluster's min.insync.replicas.
            value = str(view.defaults[MIN_INSYNC_REPLICAS])
            records.append(config_entry(Resource(ResourceType.BROKER, ""), MIN_INSYNC_REPLICAS.name, value))
        if features.transactions_supported(levels.get(features.METADATA_VERSION, 0)):
            begin = journal.BeginTransactionRecord(name="Bootstrap records")
            records = [MetadataEntry(begin), *records, MetadataEntry(journal.EndTransactionRecord())]
        return Result([*first, *records], timers=timers, notes=notes)


class RegisterController(NamedTuple):
    """Register a controller. Nothing is written if the metadata.version has no such registrations."""

    controller: Controller

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
        if self.controller.id < 0:
            raise ApiError(ErrorCode.INVALID_REGISTRATION, f"{self.controller.id} is no id of a controller")
        if not features.controllers_registered(view.state.metadata_version):
            return Result()
        return Result([controller_entry(self.controller)])


class StartBroker(NamedTuple):
    """Register and unfence the broker in the process of a sole voter, and elect it for partitions that it has the data
    of.

    While that process was down there was no controller to elect others, so this broker still leads what it led, without
    a record. It has no session: it is alive as long as its controller is.

    `clean` says that it stopped cleanly. After a crash, records that were not on disk are lost and their offsets will
    be used again, so every partition it leads gets a new leader epoch: clients that read beyond the loss can detect it.
    """

    broker: Broker
    clean: bool

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
        level = view.state.metadata_version
        unfence = journal.BrokerRegistrationChangeRecord(
            broker_id=self.broker.id, broker_epoch=self.broker.epoch, fenced=-1
        )
        records = [broker_entry(self.broker._replace(fenced=True), level), MetadataEntry(unfence)]
        records.extend(self._elections(view))
        return Result(records, timers=[no_session(self.broker.id)], notes=[Gone(self.broker.id)])

    def _elections(self, view: MetadataView) -> Iterator[MetadataEntry]:
        version = features.partition_record_version(view.state.metadata_version)
        me = self.broker.id
        brokers = {**view.state.brokers, me: self.broker}
        lossy = Elections(view, lossy=me, brokers=brokers)
        entering = Elections(view, entering=me, brokers=brokers)
        for topic, partition in list(self._concerned(view)):
            if not self.clean and len(partition.replicas) > 1 and me in (*partition.isr, *partition.elr):
                entry = lossy.change(topic, partition, Wish(isr=tuple(id for id in partition.isr if id != me)))
                after = partition if entry is None else partition.changed(entry.record)
                # another replica leads, or has what this broker may have lost
                if after.leader != NO_LEADER or after.elr:
                    if entry is not None:
                        yield entry
                    continue
            if partition.leader == me:
                if not self.clean:
                    yield MetadataEntry(_new_epoch(topic.id, partition), version)
                continue
            entry = entering.change(topic, partition)
            if entry is not None:
                yield entry

    def _concerned(self, view: MetadataView) -> Iterator[tuple[Topic, PartitionState]]:
        """Yield the partitions that have no leader and, after a crash, those that this broker was in sync with."""
        state, me = view.state, self.broker.id
        held = () if self.clean else (*state.index.by_isr.get(me, ()), *state.index.by_elr.get(me, ()))
        for topic_id, index in dict.fromkeys((*held, *state.index.leaderless)):
            topic = state.topic_by_id[topic_id]
            yield topic, topic.partitions[index]


def _new_epoch(topic_id: bytes, partition: PartitionState) -> journal.PartitionChangeRecord:
    return journal.PartitionChangeRecord(partition_id=partition.index, topic_id=topic_id, leader=partition.leader)
