"""ConsumerGroupDescribe (key 69): state, members and assignments of consumer groups (KIP-848).

v1 the type of each member
"""

from __future__ import annotations

from ottla.groups.consumer.describe import ConsumerGroupDescription, ConsumerMemberDescription, DescribeConsumerGroup
from ottla.model import limits
from ottla.model.java import table_order
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.group_descriptions import HIDDEN_TEXT, DescribeForm, describe_groups, named_partitions
from ottla.server.api.needs import TOLD_OF_GROUPS, CheckedItems, Hidden, Needs, on_group
from ottla.server.api.portions import Portions
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


@handles(
    ConsumerGroupDescribeRequest,
    needs=Needs(
        items=CheckedItems(on_group(AclOperation.DESCRIBE, ""), "group_ids", "groups:group_id", order="first"),
        hides=Hidden(
            ("members.assignment.topic_partitions.topic_name", "members.target_assignment.topic_partitions.topic_name"),
            HIDDEN_TEXT,
        ),
        operations=TOLD_OF_GROUPS,
    ),
    portions=Portions("group_ids", "groups", limits.GROUPS_PER_SLICE),
)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: Context
) -> Answer[ConsumerGroupDescribeResponse]:
    return describe_groups(request, context, _FORM)


def _fields(group: ConsumerGroupDescription, context: Context) -> dict[str, object]:
    members = table_order(group.members, lambda one: one.member.member_id)
    return {
        "group_state": group.state,
        "assignor_name": group.assignor,
        "members": [_member(each, context) for each in members],
    }


_FORM = DescribeForm(
    ConsumerGroupDescribeResponse,
    Group,
    lambda context: context.groups.require_consumer_protocol(),
    DescribeConsumerGroup,
    _fields,
    blank={"assignor_name": ""},
)


def _member(described: ConsumerMemberDescription, context: Context) -> Group.Member:
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
        assignment=Assignment(topic_partitions=named_partitions(described.owned, context, TopicPartitions)),
        target_assignment=Assignment(topic_partitions=named_partitions(described.target, context, TopicPartitions)),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )
