"""ConsumerGroupDescribe (key 69): state, members and assignments of consumer groups (KIP-848).

v1 the kind of each member
"""

from __future__ import annotations

from ottla.groups.assign.spec import Partitions
from ottla.groups.consumer.describe import DescribeConsumerGroup, Described, DescribedMember
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.java import table_order
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.groups.consumer_groups import check_enabled
from ottla.server.groups.descriptions import authorized_operations, describe_each
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    TopicPartitions,
)

Group = ConsumerGroupDescribeResponse.DescribedGroup

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


@handles(ConsumerGroupDescribeRequest, portions=Portions("group_ids", "groups", limits.GROUPS_PER_SLICE))
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: Context
) -> Answer[ConsumerGroupDescribeResponse]:
    operations = authorized_operations(request.include_authorized_operations)

    def described(group_id: str, value: Described) -> Group:
        return Group(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_state=value.state,
            group_epoch=value.epoch,
            assignment_epoch=value.assignment_epoch,
            assignor_name=value.assignor,
            members=[_member(each, context) for each in table_order(value.members, lambda one: one.member.member_id)],
            authorized_operations=operations,
        )

    groups = describe_each(context, request.group_ids, check_enabled, DescribeConsumerGroup, described, _refused)
    return groups.map(lambda found: ConsumerGroupDescribeResponse(groups=found)).soonest()


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


def _member(described: DescribedMember, context: Context) -> Group.Member:
    member = described.member
    return Group.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(described.owned, context),
        target_assignment=_assignment(described.target, context),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Partitions, context: Context) -> Assignment:
    """Topics that are gone are left out: they have no name."""
    topics = context.metadata.state.topic_by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=each, topic_name=topics[each].name, partitions=sorted(partitions[each]))
            for each in sorted(partitions)
            if each in topics
        ]
    )
