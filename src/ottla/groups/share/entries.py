"""The entries of share groups, as Kafka writes them. Lists are sorted, so that equal states have equal bytes."""

from __future__ import annotations

from collections.abc import Callable

from ottla.groups.assign.spec import Partitions
from ottla.groups.modern.entries import GroupRecords
from ottla.groups.share.member import SharedTopics, ShareMember, StatePartitions
from ottla.machine.keyed import Entry
from ottla.wire.journal import share_group as journal

_StateValue = journal.ShareGroupStatePartitionMetadataValue
_TargetValue = journal.ShareGroupTargetAssignmentMemberValue
_CurrentValue = journal.ShareGroupCurrentMemberAssignmentValue

RECORDS = GroupRecords(
    member_key=journal.ShareGroupMemberMetadataKey,
    target_key=journal.ShareGroupTargetAssignmentMemberKey,
    current_key=journal.ShareGroupCurrentMemberAssignmentKey,
    target_epoch_key=journal.ShareGroupTargetAssignmentMetadataKey,
    target_epoch_value=journal.ShareGroupTargetAssignmentMetadataValue,
)

UNKNOWN_TOPIC = "<UNKNOWN>"  # in place of the name of a deleted topic, as in Kafka


def epoch_entry(group_id: str, epoch: int, metadata_hash: int) -> Entry:
    value = journal.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Entry(journal.ShareGroupMetadataKey(group_id=group_id), value)


def group_tombstone(group_id: str) -> Entry:
    return Entry(journal.ShareGroupMetadataKey(group_id=group_id), None)


def member_entry(group_id: str, member: ShareMember) -> Entry:
    value = journal.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
    )
    return Entry(journal.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_entry(group_id: str, member_id: str, target: Partitions) -> Entry:
    value = _TargetValue(
        topic_partitions=[
            _TargetValue.TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
            for topic_id in sorted(target)
        ]
    )
    return Entry(journal.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_entry(group_id: str, member: ShareMember) -> Entry:
    value = _CurrentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=[
            _CurrentValue.TopicPartitions(topic_id=topic_id, partitions=sorted(member.assigned[topic_id]))
            for topic_id in sorted(member.assigned)
        ],
    )
    return Entry(journal.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def state_partitions_entry(group_id: str, partitions: StatePartitions, name_of: Callable[[bytes], str | None]) -> Entry:
    """Return the record of state partitions. It stores deleting topics by id only; `name_of` finds their names."""
    value = _StateValue(
        initializing_topics=_listed(partitions.initializing),
        initialized_topics=_listed(partitions.initialized),
        deleting_topics=[
            _StateValue.TopicInfo(topic_id=topic_id, topic_name=name_of(topic_id) or UNKNOWN_TOPIC)
            for topic_id in sorted(partitions.deleting)
        ],
    )
    return Entry(journal.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def state_partitions_tombstone(group_id: str) -> Entry:
    return Entry(journal.ShareGroupStatePartitionMetadataKey(group_id=group_id), None)


def _listed(topics: SharedTopics) -> list[_StateValue.TopicPartitionsInfo]:
    return [
        _StateValue.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(topics[topic_id].partitions)
        )
        for topic_id in sorted(topics)
    ]
