"""The records of a streams group, as Kafka writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from ottla.groups.modern.entries import GroupRecords
from ottla.groups.modern.group import MemberState
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.tasks import Held, OwnedTasks, Tasks, TaskSet
from ottla.groups.streams.topology import Copartition, InternalTopic, Subtopology, Topology
from ottla.machine.keyed import Entry
from ottla.wire.journal import streams_group as journal
from ottla.wire.messages.groups import streams_group_heartbeat
from ottla.wire.messages.groups.streams_group_heartbeat import StreamsGroupHeartbeatRequest

_Current = journal.StreamsGroupCurrentMemberAssignmentValue
_Target = journal.StreamsGroupTargetAssignmentMemberValue
_Member = journal.StreamsGroupMemberMetadataValue
_Group = journal.StreamsGroupMetadataValue
_TaskIds: TypeAlias = _Current.TaskIds | _Target.TaskIds | StreamsGroupHeartbeatRequest.TaskIds
_Subtopology = journal.StreamsGroupTopologyValue.Subtopology

RECORDS = GroupRecords(
    member_key=journal.StreamsGroupMemberMetadataKey,
    target_key=journal.StreamsGroupTargetAssignmentMemberKey,
    current_key=journal.StreamsGroupCurrentMemberAssignmentKey,
    target_epoch_key=journal.StreamsGroupTargetAssignmentMetadataKey,
    target_epoch_value=journal.StreamsGroupTargetAssignmentMetadataValue,
)

AssignmentConfigs = Mapping[str, str]
# Records of streams groups number the states differently from those of consumer groups.
_STATE_NUMBERS = {
    MemberState.STABLE: 1,
    MemberState.UNREVOKED_PARTITIONS: 2,
    MemberState.UNRELEASED_PARTITIONS: 3,
    MemberState.UNKNOWN: 127,
}
_STATES = {number: state for state, number in _STATE_NUMBERS.items()}


class GroupFacts(NamedTuple):
    """The content of the group's record."""

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    assignment_configs: AssignmentConfigs


def group_entry(group_id: str, facts: GroupFacts) -> Entry:
    value = _Group(
        epoch=facts.epoch,
        metadata_hash=facts.metadata_hash,
        validated_topology_epoch=facts.validated_topology_epoch,
        last_assignment_configs=[
            _Group.LastAssignmentConfig(key=name, value=facts.assignment_configs[name])
            for name in sorted(facts.assignment_configs)
        ],
    )
    return Entry(journal.StreamsGroupMetadataKey(group_id=group_id), value)


def group_tombstone(group_id: str) -> Entry:
    return Entry(journal.StreamsGroupMetadataKey(group_id=group_id), None)


def member_entry(group_id: str, member: StreamsMember) -> Entry:
    endpoint = member.endpoint
    value = _Member(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else _Member.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[_Member.KeyValue(key=name, value=value) for name, value in member.client_tags],
    )
    return Entry(journal.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def target_entry(group_id: str, member_id: str, target: TaskSet) -> Entry:
    def listed(tasks: Tasks) -> list[_Target.TaskIds]:
        return [_Target.TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]

    value = _Target(
        active_tasks=listed(target.active), standby_tasks=listed(target.standby), warmup_tasks=listed(target.warmup)
    )
    return Entry(journal.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def current_entry(group_id: str, member: StreamsMember) -> Entry:
    value = _Current(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=_STATE_NUMBERS[member.state],
        active_tasks=_held_value(member.assigned.active),
        standby_tasks=_tasks_value(member.assigned.standby),
        warmup_tasks=_tasks_value(member.assigned.warmup),
        active_tasks_pending_revocation=_held_value(member.pending_revocation.active),
        standby_tasks_pending_revocation=_tasks_value(member.pending_revocation.standby),
        warmup_tasks_pending_revocation=_tasks_value(member.pending_revocation.warmup),
    )
    return Entry(journal.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def topology_entry(group_id: str, topology: Topology) -> Entry:
    value = journal.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            _Subtopology(
                subtopology_id=each.id,
                source_topics=list(each.source_topics),
                source_topic_regex=list(each.source_regexes),
                state_changelog_topics=[_topic_value(topic) for topic in each.changelogs],
                repartition_sink_topics=list(each.repartition_sinks),
                repartition_source_topics=[_topic_value(topic) for topic in each.repartition_sources],
                copartition_groups=[
                    _Subtopology.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_regexes),
                        repartition_source_topics=list(group.repartition_sources),
                    )
                    for group in each.copartitions
                ],
            )
            for each in topology.subtopologies
        ],
    )
    return Entry(journal.StreamsGroupTopologyKey(group_id=group_id), value)


def topology_tombstone(group_id: str) -> Entry:
    return Entry(journal.StreamsGroupTopologyKey(group_id=group_id), None)


# --- from records, and from requests, which have the same shapes


def topology_of(value: journal.StreamsGroupTopologyValue | StreamsGroupHeartbeatRequest.Topology) -> Topology:
    return Topology(value.epoch, tuple(_subtopology_of(each) for each in value.subtopologies))


def tasks_of(listed: Iterable[_TaskIds]) -> Tasks:
    found: dict[str, frozenset[int]] = {}
    for each in listed:
        if each.partitions:
            found[each.subtopology_id] = found.get(each.subtopology_id, frozenset()) | frozenset(each.partitions)
    return found


def target_of(value: _Target) -> TaskSet:
    return TaskSet(tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks))


def state_of(value: _Current) -> MemberState:
    return _STATES.get(value.state, MemberState.UNKNOWN)


def assigned_of(value: _Current) -> OwnedTasks:
    active = _held_of(value.active_tasks, value.member_epoch)
    return OwnedTasks(active, tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks))


def pending_of(value: _Current) -> OwnedTasks:
    return OwnedTasks(
        _held_of(value.active_tasks_pending_revocation, value.member_epoch),
        tasks_of(value.standby_tasks_pending_revocation),
        tasks_of(value.warmup_tasks_pending_revocation),
    )


def _held_of(listed: Iterable[_Current.TaskIds], epoch: int) -> Held:
    """Return tasks with their epochs. Older records lack the epochs of single tasks: the member's is used."""
    found: dict[str, dict[int, int]] = {}
    for each in listed:
        epochs = each.assignment_epochs or []
        if len(epochs) != len(each.partitions):
            epochs = [epoch] * len(each.partitions)
        found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found


def _held_value(held: Held) -> list[_Current.TaskIds]:
    listed = []
    for name in sorted(held):
        partitions = sorted(held[name])
        epochs = [held[name][partition] for partition in partitions]
        listed.append(_Current.TaskIds(subtopology_id=name, partitions=partitions, assignment_epochs=epochs))
    return listed


def _tasks_value(tasks: Tasks) -> list[_Current.TaskIds]:
    return [_Current.TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


def _topic_value(topic: InternalTopic) -> journal.TopicInfo:
    return journal.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[journal.TopicConfig(key=name, value=value) for name, value in topic.configs],
    )


def _topic_of(value: journal.TopicInfo | streams_group_heartbeat.TopicInfo) -> InternalTopic:
    configs = tuple((each.key, each.value) for each in value.topic_configs)
    return InternalTopic(value.name, value.partitions, value.replication_factor, configs)


def _subtopology_of(value: _Subtopology | StreamsGroupHeartbeatRequest.Topology.Subtopology) -> Subtopology:
    return Subtopology(
        value.subtopology_id,
        tuple(value.source_topics),
        tuple(value.source_topic_regex),
        tuple(_topic_of(each) for each in value.state_changelog_topics),
        tuple(value.repartition_sink_topics),
        tuple(_topic_of(each) for each in value.repartition_source_topics),
        tuple(
            Copartition(
                tuple(each.source_topics), tuple(each.source_topic_regex), tuple(each.repartition_source_topics)
            )
            for each in value.copartition_groups
        ),
    )
