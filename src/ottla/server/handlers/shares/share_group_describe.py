"""ShareGroupDescribe (key 77): state, members and assignments of share groups."""

from __future__ import annotations

from ottla.groups.share.describe import DescribeShareGroup, ShareGroupDescription
from ottla.groups.share.member import ShareMember
from ottla.model import limits
from ottla.model.java import table_order
from ottla.model.settings.share import GROUP_SHARE_ASSIGNORS
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.group_descriptions import HIDDEN_TEXT, DescribeForm, describe_groups, named_partitions
from ottla.server.api.needs import TOLD_OF_GROUPS, CheckedItems, Hidden, Needs, on_group
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.shares.share_group_describe import (
    Assignment,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

Group = ShareGroupDescribeResponse.DescribedGroup


@handles(
    ShareGroupDescribeRequest,
    needs=Needs(
        items=CheckedItems(on_group(AclOperation.DESCRIBE, ""), "group_ids", "groups:group_id", order="first"),
        hides=Hidden(("members.assignment.topic_partitions.topic_name",), HIDDEN_TEXT),
        operations=TOLD_OF_GROUPS,
    ),
    portions=Portions("group_ids", "groups", limits.GROUPS_PER_SLICE),
)
def share_group_describe(request: ShareGroupDescribeRequest, context: Context) -> Answer[ShareGroupDescribeResponse]:
    return describe_groups(request, context, _FORM)


def _fields(group: ShareGroupDescription, context: Context) -> dict[str, object]:
    return {
        "group_state": group.state_name,
        "assignor_name": context.settings[GROUP_SHARE_ASSIGNORS][0],
        "members": [_member(each, context) for each in table_order(group.members, lambda one: one.member_id)],
    }


_FORM = DescribeForm(
    ShareGroupDescribeResponse,
    Group,
    lambda context: context.shares.require_enabled(),
    DescribeShareGroup,
    _fields,
    blank={"assignor_name": ""},
)


def _member(member: ShareMember, context: Context) -> Group.Member:
    return Group.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        assignment=Assignment(topic_partitions=named_partitions(member.assigned, context, TopicPartitions)),
    )
