"""StreamsGroupDescribe (key 89): state, topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from ottla.groups.streams.describe import DescribeStreamsGroup, StreamsGroupDescription, StreamsMemberDescription
from ottla.groups.streams.tasks import Tasks, TaskSet, without_epochs
from ottla.groups.streams.topology import InternalTopic, Subtopology
from ottla.model import limits
from ottla.model.java import table_order
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.group_descriptions import HIDDEN_TEXT, DescribeForm, describe_groups
from ottla.server.api.needs import TOLD_OF_GROUPS, CheckedItems, Hidden, Needs, on_group
from ottla.server.api.portions import Portions
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


@handles(
    StreamsGroupDescribeRequest,
    needs=Needs(
        items=CheckedItems(on_group(AclOperation.DESCRIBE, ""), "group_ids", "groups:group_id", order="first"),
        hides=Hidden(
            (
                "topology.subtopologies.source_topics",
                "topology.subtopologies.repartition_sink_topics",
                "topology.subtopologies.repartition_source_topics.name",
                "topology.subtopologies.state_changelog_topics.name",
            ),
            HIDDEN_TEXT,
        ),
        operations=TOLD_OF_GROUPS,
    ),
    portions=Portions("group_ids", "groups", limits.GROUPS_PER_SLICE),
)
def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: Context
) -> Answer[StreamsGroupDescribeResponse]:
    return describe_groups(request, context, _FORM)


def _fields(group: StreamsGroupDescription, _: Context) -> dict[str, object]:
    subtopologies = [_subtopology(each) for each in group.subtopologies]
    return {
        "group_state": group.state,
        "topology": Group.Topology(epoch=group.topology_epoch, subtopologies=subtopologies),
        "members": [_member(each) for each in table_order(group.members, lambda one: one.member.member_id)],
    }


_FORM = DescribeForm(
    StreamsGroupDescribeResponse,
    Group,
    lambda context: context.groups.require_streams_protocol(),
    DescribeStreamsGroup,
    _fields,
    blank={},
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


def _member(described: StreamsMemberDescription) -> Group.Member:
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
