"""Committed offsets in the journal: their records, and how a record changes the state."""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.offsets.store import NO_EXPIRY, CommittedOffset
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry, Marker
from ottla.model.ids import (
    NO_ID,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from ottla.wire.journal.consumer_offsets import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue

# The record versions that Kafka 4.3 writes: a topic id needs version 4, an expiry of its own version 1, everything else
# is version 3.
_PLAIN, _WITH_EXPIRY, _WITH_TOPIC_ID = 3, 1, 4


def entry_of(
    group_id: str,
    partition: TopicPartition,
    committed: CommittedOffset,
    producer_id: ProducerId = NO_PRODUCER_ID,
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH,
) -> Entry:
    version = _PLAIN if committed.expires_at_ms == NO_EXPIRY else _WITH_EXPIRY
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.committed_at_ms,
        expire_timestamp=committed.expires_at_ms,
        topic_id=committed.topic_id,
    )
    return Entry(_key(group_id, partition), value, version, producer_id, producer_epoch)


def tombstone(group_id: str, partition: TopicPartition) -> Entry:
    return Entry(_key(group_id, partition), None)


def _key(group_id: str, partition: TopicPartition) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)


def apply_commit(view: GroupsView, entry: Entry) -> None:
    key, value = entry.key, entry.value
    partition = TopicPartition(key.topic, key.partition)
    if value is None:
        view.state.offsets.remove(key.group, partition)
        return
    if key.group not in view.state.groups:
        # A commit by a client that has not joined creates a group that has only offsets.
        view.state.groups[key.group] = ClassicGroup.empty(key.group, value.commit_timestamp)
    legacy = isinstance(key, LegacyOffsetCommitKey)
    committed = CommittedOffset(
        value.offset,
        NO_LEADER_EPOCH if legacy else value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        NO_EXPIRY if legacy else value.expire_timestamp,
        NO_ID if legacy else value.topic_id,
        view.state.offsets.next_order(),
    )
    view.state.offsets.commit(key.group, partition, committed, entry.producer_id)


def apply_marker(view: GroupsView, marker: Marker) -> None:
    view.state.offsets.end_transaction(marker.producer_id, commit=marker.commit)
