"""ShareGroupDescribe (key 77): state, members and assignments of share groups."""

from __future__ import annotations

from ottla.groups.share.describe import Described, DescribeShareGroup
from ottla.groups.share.group import ShareMember
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.answer import Answer, Later, gather
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.operations import GROUP_OPERATIONS, NOT_ASKED
from ottla.server.shares import check_enabled
from ottla.wire.messages.share_group_describe import (
    Assignment,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

Group = ShareGroupDescribeResponse.DescribedGroup


@handles(ShareGroupDescribeRequest)
def share_group_describe(request: ShareGroupDescribeRequest, context: Context) -> Answer[ShareGroupDescribeResponse]:
    try:
        check_enabled(context)
    except ApiError as error:
        return ShareGroupDescribeResponse(groups=[_refused(name, error) for name in request.group_ids])
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    groups = gather([_describe(name, operations, context) for name in request.group_ids])
    return groups.map(lambda found: ShareGroupDescribeResponse(groups=found)).soonest()


def _describe(group_id: str, operations: int, context: Context) -> Later[Group]:
    def described(value: Described | ApiError) -> Group:
        if isinstance(value, ApiError):
            return _refused(group_id, value)
        return Group(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_state=value.state_name,
            group_epoch=value.epoch,
            assignment_epoch=value.assignment_epoch,
            assignor_name=context.settings.get("group.share.assignors")[0],
            members=[_member(member, context) for member in value.members],
            authorized_operations=operations,
        )

    if not group_id:
        nameless: Later[Group] = Later()
        nameless.set(_refused(group_id, ApiError(ErrorCode.INVALID_GROUP_ID)))
        return nameless
    return context.groups.submit(group_id, DescribeShareGroup(group_id)).map(described)


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
