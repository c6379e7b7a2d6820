"""ShareGroupDescribe (key 77): state, members and assignments of share groups."""

from __future__ import annotations

from ottla.groups.share.describe import Described, DescribeShareGroup
from ottla.groups.share.member import ShareMember
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.java import table_order
from ottla.model.settings.share import GROUP_SHARE_ASSIGNORS
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.groups.descriptions import authorized_operations, describe_each
from ottla.server.loop.later import Answer
from ottla.server.shares.coordinators import check_enabled
from ottla.wire.messages.shares.share_group_describe import (
    Assignment,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

Group = ShareGroupDescribeResponse.DescribedGroup


@handles(ShareGroupDescribeRequest, portions=Portions("group_ids", "groups", limits.GROUPS_PER_SLICE))
def share_group_describe(request: ShareGroupDescribeRequest, context: Context) -> Answer[ShareGroupDescribeResponse]:
    operations = authorized_operations(request.include_authorized_operations)

    def described(group_id: str, value: Described) -> Group:
        return Group(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_state=value.state_name,
            group_epoch=value.epoch,
            assignment_epoch=value.assignment_epoch,
            assignor_name=context.settings[GROUP_SHARE_ASSIGNORS][0],
            members=[_member(each, context) for each in table_order(value.members, lambda one: one.member_id)],
            authorized_operations=operations,
        )

    groups = describe_each(context, request.group_ids, check_enabled, DescribeShareGroup, described, _refused)
    return groups.map(lambda found: ShareGroupDescribeResponse(groups=found)).soonest()


def _refused(group_id: str, error: ApiError) -> Group:
    return Group(
        error_code=error.code,
        error_message=error.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def _member(member: ShareMember, context: Context) -> Group.Member:
    topics = context.metadata.state.topic_by_id
    return Group.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(partitions))
                for topic_id, partitions in sorted(member.assigned.items())
                if topic_id in topics
            ]
        ),
    )
