"""AlterPartition: a leader reports which replicas are in sync. Each partition succeeds or fails by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.cluster.entities import UNCHANGED_LEADER, PartitionState, Topic
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.leader_election import Elections, Wish
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER_EPOCH, BrokerEpoch, LeaderEpoch, PartitionEpoch

_RECOVERED, _RECOVERING = 0, 1


class IsrMember(NamedTuple):
    """A replica in sync; its broker epoch is -1 if the leader does not know it."""

    broker_id: int
    epoch: BrokerEpoch = NO_BROKER_EPOCH


class IsrChange(NamedTuple):
    """The ISR that a leader proposes, and the epochs under which it does."""

    topic_id: bytes
    index: int  # type: ignore[assignment]  # hides tuple.index
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[IsrMember, ...]
    recovering: int = _RECOVERED


class IsrOutcome(NamedTuple):
    """The result of one proposal; `state` is the partition as it is now, None if it was refused."""

    topic_id: bytes
    index: int  # type: ignore[assignment]  # hides tuple.index
    error: ErrorCode
    state: PartitionState | None = None


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """Replies with an IsrOutcome for each change, in order."""

    broker_id: int
    broker_epoch: BrokerEpoch
    changes: tuple[IsrChange, ...]

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[IsrOutcome]]:
        view.checked_broker(self.broker_id, self.broker_epoch)
        elections = Elections(view)
        records: list[MetadataEntry] = []
        outcomes = [self._one(view, elections, change, records) for change in self.changes]
        return Result(records, outcomes)

    def _one(
        self, view: MetadataView, elections: Elections, change: IsrChange, records: list[MetadataEntry]
    ) -> IsrOutcome:
        topic = view.state.topic_by_id.get(change.topic_id)
        if topic is None:
            return IsrOutcome(change.topic_id, change.index, ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= change.index < len(topic.partitions):
            return IsrOutcome(topic.id, change.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = topic.partitions[change.index]
        error = _refusal(view, self.broker_id, partition, change)
        if error is not ErrorCode.NONE:
            return IsrOutcome(topic.id, change.index, error)
        return self._accept(elections, topic, partition, change, records)

    def _accept(
        self,
        elections: Elections,
        topic: Topic,
        partition: PartitionState,
        change: IsrChange,
        records: list[MetadataEntry],
    ) -> IsrOutcome:
        isr = tuple(member.broker_id for member in change.isr)
        entry = elections.change(topic, partition, Wish(isr=isr, recovering=change.recovering))
        if entry is not None:
            records.append(entry)
            if entry.record.leader not in (self.broker_id, UNCHANGED_LEADER):
                # The change completed a reassignment that removed the sender from the replicas, so another replica
                # leads.
                return IsrOutcome(topic.id, change.index, ErrorCode.NEW_LEADER_ELECTED)
            partition = partition.changed(entry.record)
        return IsrOutcome(topic.id, change.index, ErrorCode.NONE, partition)


def _refusal(view: MetadataView, sender: int, partition: PartitionState, change: IsrChange) -> ErrorCode:
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        # a sender that knows newer epochs than this node has heard from a newer controller
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if change.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    ids = [member.broker_id for member in change.isr]
    if len(set(ids)) < len(ids) or not set(ids) <= set(partition.replicas) or sender not in ids:
        return ErrorCode.INVALID_REQUEST
    if change.recovering not in (_RECOVERED, _RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if change.recovering == _RECOVERING and (len(ids) > 1 or partition.recovering == _RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not all(_eligible(view, member) for member in change.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _eligible(view: MetadataView, member: IsrMember) -> bool:
    broker = view.state.brokers.get(member.broker_id)
    return broker is not None and broker.active and member.epoch in (-1, broker.epoch)
