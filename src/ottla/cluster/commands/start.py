"""What a node writes when it starts to lead the metadata journal and to serve: bootstrap, registration, elections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.cluster import features
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
    """A new leader takes over: an empty journal gets its first records, an unfinished transaction is aborted, every
    broker gets a whole session's time, and what is done now and then begins.
    """

    bootstrap: tuple[MetadataEntry, ...]

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry]:
        timers, notes = greet(view, now_ms)
        timers += [*periodic(view, now_ms), *idle(view, now_ms)]
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
    """Nothing is written where the metadata.version knows of no such registrations."""

    controller: Controller

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry]:
        if self.controller.id < 0:
            raise ApiError(ErrorCode.INVALID_REGISTRATION, f"{self.controller.id} is no id of a controller")
        if not features.controllers_registered(view.state.metadata_version):
            return Result()
        return Result([controller_entry(self.controller)])


class StartBroker(NamedTuple):
    """For the broker in the process of a sole voter: registers it, unfences it, and elects it where it has the data.

    While that process was down nobody could elect anybody, so where it led it still leads, without a record.
    It has no session: it is alive as long as its controller is.

    `clean` says that it stopped in order. After a crash, what was not yet on disk is lost and the same offsets will be
    written again, so every partition it leads gets a new leader epoch: clients that read past the loss can tell.
    """

    broker: Broker
    clean: bool

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry]:
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
                if after.leader != NO_LEADER or after.elr:  # another leads, or has what this one may have lost
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
        """What it may have lost something of, and what nobody leads."""
        state, me = view.state, self.broker.id
        held = () if self.clean else (*state.index.by_isr.get(me, ()), *state.index.by_elr.get(me, ()))
        for topic_id, index in dict.fromkeys((*held, *state.index.leaderless)):
            topic = state.topic_by_id[topic_id]
            yield topic, topic.partitions[index]


def _new_epoch(topic_id: bytes, partition: PartitionState) -> journal.PartitionChangeRecord:
    return journal.PartitionChangeRecord(partition_id=partition.index, topic_id=topic_id, leader=partition.leader)
