"""How members leave a consumer group: for good, temporarily (static members), or after a timeout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ottla.groups.consumer.downgrade import downgrade, may_downgrade
from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.entries import RECORDS, current_entry, regex_tombstone
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import NO_OWNED, ConsumerMember, with_epoch, without_epochs
from ottla.groups.find import find_group
from ottla.groups.group import GroupKind
from ottla.groups.modern.group import STATIC_LEAVE_EPOCH
from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.modern.timeouts import MemberTimeouts
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode

ReplyT = TypeVar("ReplyT")
_TIMERS = ("session", "revocation", "rejoin", "sync")


def remove(draft: ConsumerDraft, members: Sequence[ConsumerMember], reply: ReplyT) -> Result[Entry, ReplyT]:
    """Remove members for good. If only members of the classic protocol remain, the group may be downgraded."""
    group = draft.group
    gone = [member.member_id for member in members]
    for member_id in gone:
        for name in _TIMERS:
            draft.cancel((name, group.group_id, member_id))
    if may_downgrade(draft, gone):
        return downgrade(draft, gone, reply)
    for member_id in gone:
        draft.records += RECORDS.member_tombstones(group.group_id, member_id)
    left = {member_id: member for member_id, member in group.members.items() if member_id not in gone}
    stay = {member.subscribed_regex for member in left.values()}
    leave = dict.fromkeys(member.subscribed_regex for member in members if member.subscribed_regex)
    draft.records += [regex_tombstone(group.group_id, regex) for regex in leave if regex not in stay]
    draft.bump(metadata_hash(group.names_with(left), draft.view.topics))
    return draft.result(reply)


@dataclass(frozen=True, slots=True)
class ConsumerLeave:
    """A heartbeat with epoch -1 or -2. Replies with the member's id."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, str]:
        group = consumer_group(view, self.group_id)
        draft = ConsumerDraft(view, group, now_ms)
        if self.instance_id is None:
            return remove(draft, [group.member(self.member_id)], self.member_id)
        member = check_instance(group.static_member(self.instance_id), self.member_id, self.instance_id)
        if self.epoch != STATIC_LEAVE_EPOCH:
            return remove(draft, [member], self.member_id)
        # The instance that returns in its place starts with low epochs and must be able to commit.
        assigned = with_epoch(without_epochs(member.assigned), 0)
        away = replace(member, epoch=STATIC_LEAVE_EPOCH, assigned=assigned, pending_revocation=NO_OWNED)
        draft.records.append(current_entry(group.group_id, away))
        return draft.result(member.member_id)


TIMEOUTS = MemberTimeouts(
    ConsumerGroup,
    "session",
    "revocation",
    lambda view, group, member_id, now_ms: remove(ConsumerDraft(view, group, now_ms), [group.member(member_id)], None),
)


def watch_revocation(draft: ConsumerDraft, old: ConsumerMember, new: ConsumerMember) -> None:
    """Watch the revocations of a member; those of the classic protocol revoke when they rejoin, which has its own
    timeout.
    """
    if new.classic is None:
        TIMEOUTS.watch_revocation(draft, old, new)


def consumer_group(view: GroupsView, group_id: str) -> ConsumerGroup:
    """Return the consumer group; raises GROUP_ID_NOT_FOUND."""
    return find_group(view, group_id, ConsumerGroup, GroupKind.CONSUMER)


def check_instance(member: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    """Return the member of that instance id; raises unless it has this member id."""
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member
