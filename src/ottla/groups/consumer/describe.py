"""DescribeConsumerGroup: describe a consumer group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.assign.spec import Partitions
from ottla.groups.consumer.draft import assignor_names
from ottla.groups.consumer.leave import consumer_group
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.settings.groups import GROUP_CONSUMER_ASSIGNORS


class ConsumerMemberDescription(NamedTuple):
    """A member with the partitions it owns (including those it is revoking) and its target."""

    member: ConsumerMember
    owned: Partitions
    target: Partitions


class ConsumerGroupDescription(NamedTuple):
    """A snapshot of a group."""

    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ConsumerMemberDescription, ...]


@dataclass(frozen=True, slots=True)
class DescribeConsumerGroup:
    """Replies with a ConsumerGroupDescription; GROUP_ID_NOT_FOUND also if the group is of another kind."""

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ConsumerGroupDescription]:
        group = consumer_group(view, self.group_id)
        default = assignor_names(view.setting(GROUP_CONSUMER_ASSIGNORS))[0]
        members = tuple(
            ConsumerMemberDescription(member, _all_owned(member), group.target_of(member.member_id))
            for member in group.members.values()
        )
        return Result(
            reply=ConsumerGroupDescription(
                group.state_name,
                group.epoch,
                group.assignment_epoch,
                group.preferred_assignor(group.members) or default,
                members,
            )
        )


def _all_owned(member: ConsumerMember) -> Partitions:
    found: dict[bytes, frozenset[int]] = {}
    for owned in (member.assigned, member.pending_revocation):
        for topic_id, partitions in owned.items():
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(partitions)
    return found
