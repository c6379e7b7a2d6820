"""The records of a consumer group, as Kafka writes them; None in place of the content makes a tombstone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.groups.assign.spec import Partitions
from ottla.groups.consumer.member import ClassicProtocol, ClassicSide, ConsumerMember, Owned
from ottla.machine.keyed import Entry
from ottla.wire.journal import consumer_group as journal

_Classic = journal.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
_Assigned = journal.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
_Target = journal.ConsumerGroupTargetAssignmentMemberValue.TopicPartition


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched at some time."""

    topics: frozenset[str]
    resolved_ms: int
    version: int = 0  # of Kafka's metadata; here a flag marks what is out of date


def epoch_entry(group_id: str, epoch: int | None, metadata_hash: int) -> Entry:
    key = journal.ConsumerGroupMetadataKey(group_id=group_id)
    if epoch is None:
        return Entry(key, None)
    return Entry(key, journal.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash))


def partition_metadata_tombstone(group_id: str) -> Entry:
    return Entry(journal.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_entry(group_id: str, member_id: str, member: ConsumerMember | None) -> Entry:
    key = journal.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    if member is None:
        return Entry(key, None)
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
    return Entry(key, value)


def target_epoch_entry(group_id: str, epoch: int | None, assigned_ms: int) -> Entry:
    key = journal.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    if epoch is None:
        return Entry(key, None)
    value = journal.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_ms)
    return Entry(key, value)


def target_entry(group_id: str, member_id: str, target: Partitions | None) -> Entry:
    key = journal.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    if target is None:
        return Entry(key, None)
    listed = [_Target(topic_id=topic_id, partitions=sorted(target[topic_id])) for topic_id in sorted(target)]
    return Entry(key, journal.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=listed))


def current_entry(group_id: str, member_id: str, member: ConsumerMember | None) -> Entry:
    key = journal.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    if member is None:
        return Entry(key, None)
    value = journal.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_owned_value(member.assigned),
        partitions_pending_revocation=_owned_value(member.pending_revocation),
    )
    return Entry(key, value)


def regex_entry(group_id: str, regex: str, resolved: ResolvedRegex | None) -> Entry:
    key = journal.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    if resolved is None:
        return Entry(key, None)
    value = journal.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.resolved_ms
    )
    return Entry(key, value)


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    """Return a member's tombstones in the order in which a coordinator expects to read them."""
    return [
        current_entry(group_id, member_id, None),
        target_entry(group_id, member_id, None),
        member_entry(group_id, member_id, None),
    ]


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


def target_of(listed: Iterable[_Target]) -> Partitions:
    return {each.topic_id: frozenset(each.partitions) for each in listed}


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
