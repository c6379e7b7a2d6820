"""The records of a consumer group, as Kafka writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.groups.assign.spec import Partitions
from ottla.groups.consumer.member import ClassicProtocol, ClassicSide, ConsumerMember, Owned
from ottla.groups.modern.entries import GroupRecords
from ottla.machine.keyed import Entry
from ottla.wire.journal import consumer_group as journal

_Classic = journal.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
_Assigned = journal.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
_Target = journal.ConsumerGroupTargetAssignmentMemberValue.TopicPartition

RECORDS = GroupRecords(
    member_key=journal.ConsumerGroupMemberMetadataKey,
    target_key=journal.ConsumerGroupTargetAssignmentMemberKey,
    current_key=journal.ConsumerGroupCurrentMemberAssignmentKey,
    target_epoch_key=journal.ConsumerGroupTargetAssignmentMetadataKey,
    target_epoch_value=journal.ConsumerGroupTargetAssignmentMetadataValue,
)


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched at some time."""

    topics: frozenset[str]
    resolved_ms: int
    version: int = 0  # of Kafka's metadata; here a flag marks what is out of date


def epoch_entry(group_id: str, epoch: int, metadata_hash: int) -> Entry:
    value = journal.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Entry(journal.ConsumerGroupMetadataKey(group_id=group_id), value)


def group_tombstone(group_id: str) -> Entry:
    return Entry(journal.ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> Entry:
    return Entry(journal.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_entry(group_id: str, member: ConsumerMember) -> Entry:
    value = journal.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=_classic_value(member.classic),
    )
    return Entry(journal.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_entry(group_id: str, member_id: str, target: Partitions) -> Entry:
    listed = [_Target(topic_id=topic_id, partitions=sorted(target[topic_id])) for topic_id in sorted(target)]
    value = journal.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=listed)
    return Entry(journal.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_entry(group_id: str, member: ConsumerMember) -> Entry:
    value = journal.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_owned_value(member.assigned),
        partitions_pending_revocation=_owned_value(member.pending_revocation),
    )
    return Entry(journal.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def regex_entry(group_id: str, regex: str, resolved: ResolvedRegex) -> Entry:
    value = journal.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.resolved_ms
    )
    return Entry(journal.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def regex_tombstone(group_id: str, regex: str) -> Entry:
    return Entry(journal.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


# --- from records


def classic_of(value: _Classic | None) -> ClassicSide | None:
    if value is None:
        return None
    protocols = tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in value.supported_protocols)
    return ClassicSide(value.session_timeout_ms, protocols)


def owned_of(listed: Iterable[_Assigned], epoch: int) -> Owned:
    """Return owned partitions with their epochs. Older records lack the epochs of single partitions: the member's is
    used.
    """
    found: dict[bytes, dict[int, int]] = {}
    for each in listed:
        epochs = each.assignment_epochs or []
        if len(epochs) == len(each.partitions):
            found[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
        else:
            found[each.topic_id] = dict.fromkeys(each.partitions, epoch)
    return found


def target_of(value: journal.ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}


def _classic_value(classic: ClassicSide | None) -> _Classic | None:
    if classic is None:
        return None
    protocols = [_Classic.ClassicProtocol(name=each.name, metadata=each.metadata) for each in classic.protocols]
    return _Classic(session_timeout_ms=classic.session_timeout_ms, supported_protocols=protocols)


def _owned_value(owned: Owned) -> list[_Assigned]:
    listed = []
    for topic_id in sorted(owned):
        partitions = sorted(owned[topic_id])
        epochs = [owned[topic_id][partition] for partition in partitions]
        listed.append(_Assigned(topic_id=topic_id, partitions=partitions, assignment_epochs=epochs))
    return listed
