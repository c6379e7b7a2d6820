"""The entries of share groups, as Kafka writes them. Lists are sorted, so that equal states have equal bytes."""

from __future__ import annotations

from collections.abc import Callable

from ottla.groups.assign.spec import Partitions
from ottla.groups.share.member import SharedTopics, ShareMember, StatePartitions
from ottla.machine.keyed import Entry
from ottla.wire.journal import share_group as journal

BookValue = journal.ShareGroupStatePartitionMetadataValue
TargetValue = journal.ShareGroupTargetAssignmentMemberValue
CurrentValue = journal.ShareGroupCurrentMemberAssignmentValue

UNKNOWN_TOPIC = "<UNKNOWN>"  # in place of the name of a deleted topic, as in Kafka


def group(group_id: str, epoch: int, metadata_hash: int) -> Entry:
    value = journal.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Entry(journal.ShareGroupMetadataKey(group_id=group_id), value)


def no_group(group_id: str) -> Entry:
    return Entry(journal.ShareGroupMetadataKey(group_id=group_id), None)


def member(group_id: str, member: ShareMember) -> Entry:
    value = journal.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
    )
    return Entry(journal.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def no_member(group_id: str, member_id: str) -> Entry:
    return Entry(journal.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def targets(group_id: str, epoch: int, now_ms: int) -> Entry:
    value = journal.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return Entry(journal.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def no_targets(group_id: str) -> Entry:
    return Entry(journal.ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def target(group_id: str, member_id: str, target: Partitions) -> Entry:
    value = TargetValue(
        topic_partitions=[
            TargetValue.TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
            for topic_id in sorted(target)
        ]
    )
    return Entry(journal.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def no_target(group_id: str, member_id: str) -> Entry:
    return Entry(journal.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def current(group_id: str, member: ShareMember) -> Entry:
    value = CurrentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=[
            CurrentValue.TopicPartitions(topic_id=topic_id, partitions=sorted(member.assigned[topic_id]))
            for topic_id in sorted(member.assigned)
        ],
    )
    return Entry(journal.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def no_current(group_id: str, member_id: str) -> Entry:
    return Entry(journal.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def book(group_id: str, book: StatePartitions, name_of: Callable[[bytes], str | None]) -> Entry:
    """Return the record of state partitions. It stores deleting topics by id only; `name_of` finds their names."""
    value = BookValue(
        initializing_topics=_side(book.initializing),
        initialized_topics=_side(book.initialized),
        deleting_topics=[
            BookValue.TopicInfo(topic_id=topic_id, topic_name=name_of(topic_id) or UNKNOWN_TOPIC)
            for topic_id in sorted(book.deleting)
        ],
    )
    return Entry(journal.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def no_book(group_id: str) -> Entry:
    return Entry(journal.ShareGroupStatePartitionMetadataKey(group_id=group_id), None)


def _side(side: SharedTopics) -> list[BookValue.TopicPartitionsInfo]:
    return [
        BookValue.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=side[topic_id].name, partitions=sorted(side[topic_id].partitions)
        )
        for topic_id in sorted(side)
    ]
