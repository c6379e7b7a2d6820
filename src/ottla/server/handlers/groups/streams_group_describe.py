"""StreamsGroupDescribe (key 89): state, topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from ottla.groups.streams.describe import Described, DescribedMember, DescribeStreamsGroup
from ottla.groups.streams.tasks import Tasks, TaskSet, without_epochs
from ottla.groups.streams.topology import InternalTopic, Subtopology
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.java import table_order
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.groups.descriptions import authorized_operations, describe_each
from ottla.server.groups.streams_groups import check_enabled
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.streams_group_describe import (
    Assignment,
    Endpoint,
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    TaskIds,
    TopicInfo,
)

Group = StreamsGroupDescribeResponse.DescribedGroup


@handles(StreamsGroupDescribeRequest, portions=Portions("group_ids", "groups", limits.GROUPS_PER_SLICE))
def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: Context
) -> Answer[StreamsGroupDescribeResponse]:
    operations = authorized_operations(request.include_authorized_operations)

    def described(group_id: str, value: Described) -> Group:
        subtopologies = [_subtopology(each) for each in value.subtopologies]
        return Group(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_state=value.state,
            group_epoch=value.epoch,
            assignment_epoch=value.assignment_epoch,
            topology=Group.Topology(epoch=value.topology_epoch, subtopologies=subtopologies),
            members=[_member(each) for each in table_order(value.members, lambda one: one.member.member_id)],
            authorized_operations=operations,
        )

    groups = describe_each(context, request.group_ids, check_enabled, DescribeStreamsGroup, described, _refused)
    return groups.map(lambda found: StreamsGroupDescribeResponse(groups=found)).soonest()


def _refused(group_id: str, error: ApiError) -> Group:
    return Group(
        error_code=error.code,
        error_message=error.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )


def _subtopology(described: Subtopology) -> Group.Topology.Subtopology:
    return Group.Topology.Subtopology(
        subtopology_id=described.id,
        source_topics=sorted(described.source_topics),
        repartition_sink_topics=sorted(described.repartition_sinks),
        state_changelog_topics=_topics(described.changelogs),
        repartition_source_topics=_topics(described.repartition_sources),
    )


def _topics(topics: tuple[InternalTopic, ...]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[KeyValue(key=name, value=value) for name, value in each.configs],
        )
        for each in sorted(topics)
    ]


def _member(described: DescribedMember) -> Group.Member:
    member = described.member
    endpoint = member.endpoint
    return Group.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=name, value=value) for name, value in member.client_tags],
        task_offsets=[],
        task_end_offsets=[],
        assignment=_assignment(without_epochs(member.assigned)),
        target_assignment=_assignment(described.target),
        is_classic=False,
    )


def _assignment(tasks: TaskSet) -> Assignment:
    return Assignment(
        active_tasks=_listed(tasks.active), standby_tasks=_listed(tasks.standby), warmup_tasks=_listed(tasks.warmup)
    )


def _listed(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]
