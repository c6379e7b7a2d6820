"""ShareGroupHeartbeat: members join (epoch 0), stay, and leave (epoch -1).

One heartbeat does everything that is due for the group: it writes the member's description, bumps the group's epoch if
the description or the topics changed, computes the targets for a new epoch, moves this member to its target, and
requests the state of partitions that have none yet. Partitions are assigned only when their state is initialised, so a
first heartbeat gets none; a later one finds initialised partitions without a reader, which bumps the epoch again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

from ottla.groups.assign.spec import Partitions
from ottla.groups.modern.group import JOIN_EPOCH, LEAVE_EPOCH, MemberState
from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.modern.target import TargetMember, changes, may_assign, new_targets
from ottla.groups.modern.topics_changed import MetadataSeen
from ottla.groups.share import entries
from ottla.groups.share.group import ShareGroup, find, find_or_begin
from ottla.groups.share.member import ShareMember
from ottla.groups.share.simple_assignor import simple
from ottla.groups.share.state_partitions import initialize_missing
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.group_settings import (
    SHARE_ASSIGNMENT_INTERVAL_MS,
    SHARE_HEARTBEAT_INTERVAL_MS,
    SHARE_SESSION_TIMEOUT_MS,
)
from ottla.model.settings.share import GROUP_SHARE_MAX_SIZE

Members = Mapping[str, ShareMember]

ReplyT = TypeVar("ReplyT")


class ShareHeartbeatReply(NamedTuple):
    """The answer to a heartbeat; `assigned` None: unchanged."""

    member_id: str
    epoch: int
    interval_ms: int
    assigned: Partitions | None


class Epoch(NamedTuple):
    """The group's epoch after this heartbeat, and whether it is a new one."""

    number: int
    is_new: bool
    names: frozenset[str]  # all topics the group reads


class ShareTarget(NamedTuple):
    """The target of a member, and the epoch it was computed for."""

    epoch: int
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class ShareHeartbeat:
    """A heartbeat; `topics` and `rack_id` None: unchanged."""

    group_id: str
    member_id: str
    epoch: int
    rack_id: str | None
    topics: frozenset[str] | None
    client_id: str
    client_host: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ShareHeartbeatReply]:
        if self.epoch == LEAVE_EPOCH:
            group = find(view, self.group_id)
            reply = ShareHeartbeatReply(self.member_id, LEAVE_EPOCH, 0, None)
            return _removal(view, group, group.member(self.member_id), reply)
        group = self._group(view)
        before = group.members.get(self.member_id) or self._newcomer(group)
        _check_epoch(before, self.epoch)
        member = self._updated(before)
        records: list[Entry] = []
        if member != before:
            records.append(entries.member_entry(self.group_id, member))
        members = {**group.members, self.member_id: member}
        epoch = _epoch(view, group, members, member.subscribed_topics != before.subscribed_topics, records)
        target = _target(view, group, epoch.number, members, self.member_id, now_ms, records)
        after = _reconciled(view, member, target, epoch.is_new)
        if after != member:
            records.append(entries.current_entry(self.group_id, after))
        asked = initialize_missing(view, group, epoch.number, epoch.names, now_ms)
        tells = self.epoch == JOIN_EPOCH or self.topics is not None or after.assigned != before.assigned
        interval_ms = view.group(self.group_id)[SHARE_HEARTBEAT_INTERVAL_MS]
        return Result(
            [*records, *(asked.records if asked else ())],
            ShareHeartbeatReply(self.member_id, after.epoch, interval_ms, after.assigned if tells else None),
            timers=[session_timer(view, self.group_id, self.member_id, now_ms)],
            notes=[MetadataSeen(self.group_id), *(asked.notes if asked else ())],
            effects=asked.effects if asked else (),
        )

    def _group(self, view: GroupsView) -> ShareGroup:
        if self.epoch != JOIN_EPOCH and self.group_id not in view.state.groups:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {self.group_id} not found.")
        group = find_or_begin(view, self.group_id)
        if self.member_id not in group.members:
            group.check_size(view.setting(GROUP_SHARE_MAX_SIZE))
        return group

    def _newcomer(self, group: ShareGroup) -> ShareMember:
        return ShareMember(self.member_id) if self.epoch == JOIN_EPOCH else group.member(self.member_id)

    def _updated(self, member: ShareMember) -> ShareMember:
        return replace(
            member,
            rack_id=member.rack_id if self.rack_id is None else self.rack_id,
            subscribed_topics=member.subscribed_topics if self.topics is None else self.topics,
            client_id=self.client_id,
            client_host=self.client_host,
        )


@dataclass(frozen=True, slots=True)
class ShareSessionEnded:
    """Remove a member that was not heard from for its session timeout."""

    group_id: str
    member_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ShareGroup) or self.member_id not in group.members:
            return Result()
        return _removal(view, group, group.members[self.member_id], None)


def session_timer(view: GroupsView, group_id: str, member_id: str, now_ms: int) -> Timer:
    timeout_ms = view.group(group_id)[SHARE_SESSION_TIMEOUT_MS]
    return Timer(_timer_key(group_id, member_id), now_ms + timeout_ms, ShareSessionEnded(group_id, member_id))


def _timer_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("share session", group_id, member_id)


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Check the member's epoch: a member that missed the last answer sends the epoch before; other epochs are
    fenced.
    """
    if epoch in (JOIN_EPOCH, member.epoch) or (epoch < member.epoch and epoch == member.previous_epoch):
        return
    known = f"({epoch}) than the one known by the group coordinator ({member.epoch})"
    rejoin = "The member must abandon all its partitions and rejoin."
    if epoch > member.epoch:
        text = f"The share group member has a greater member epoch {known}. {rejoin}"
    else:
        text = (
            f"The share group member has a smaller member epoch {known}, and it does not match the previous member "
            f"epoch ({member.previous_epoch}). {rejoin}"
        )
    raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, text)


def _epoch(view: GroupsView, group: ShareGroup, members: Members, subscribed: bool, records: list[Entry]) -> Epoch:
    """Bump the epoch if the members' subscriptions, their topics, or the assignable partitions changed."""
    is_new = subscribed or (group.assignment_epoch >= group.epoch and _has_unassigned(group))
    if not is_new and not group.metadata_stale:
        return Epoch(group.epoch, False, group.subscribed_names())
    names = group.names_with(members)
    hash_ = metadata_hash(names, view.topics)
    if not is_new and hash_ == group.metadata_hash:
        return Epoch(group.epoch, False, names)
    records.append(entries.epoch_entry(group.group_id, group.epoch + 1, hash_))
    return Epoch(group.epoch + 1, True, names)


def _has_unassigned(group: ShareGroup) -> bool:
    """Whether the assigned partitions of some subscribed topic differ from its initialised ones."""
    if group.state_partitions is None:
        return False
    given: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        for topic_id, partitions in target.items():
            given.setdefault(topic_id, set()).update(partitions)
    names = group.subscribed_names()
    return any(
        each.name in names and given.get(topic_id, set()) != each.partitions
        for topic_id, each in group.state_partitions.initialized.items()
    )


def _target(
    view: GroupsView, group: ShareGroup, epoch: int, members: Members, member_id: str, now_ms: int, records: list[Entry]
) -> ShareTarget:
    """Return the member's target; compute all targets for a new epoch first, if the assignment interval has passed."""
    interval_ms = view.group(group.group_id)[SHARE_ASSIGNMENT_INTERVAL_MS]
    if group.assignment_epoch >= epoch or not may_assign(group.assigned_ms, interval_ms, now_ms):
        return ShareTarget(group.assignment_epoch, group.target_of(member_id))
    initialized = group.state_partitions.initialized if group.state_partitions is not None else {}
    assignable = {topic_id: each.partitions for topic_id, each in initialized.items()}
    readers = {
        each.member_id: TargetMember(each.subscribed_topics, group.target_of(each.member_id), None, each.rack_id)
        for each in members.values()
    }
    found = new_targets(readers, view.topics, partial(simple, assignable=assignable))
    records.extend(
        entries.target_entry(group.group_id, change.member_id, change.target)
        for change in changes(group.targets, found)
    )
    records.append(entries.RECORDS.target_epoch(group.group_id, epoch, now_ms))
    return ShareTarget(epoch, found[member_id])


def _reconciled(view: GroupsView, member: ShareMember, target: ShareTarget, is_new: bool) -> ShareMember:
    """Return the member at its target; it need not wait, since partitions may be shared."""
    if member.epoch == target.epoch and not is_new:
        return member
    ids = {topic.id for name in member.subscribed_topics if (topic := view.topics.by_name(name)) is not None}
    assigned = {topic_id: each for topic_id, each in target.partitions.items() if topic_id in ids}
    if member.epoch == target.epoch:
        return replace(member, assigned=assigned)
    return replace(member, epoch=target.epoch, previous_epoch=member.epoch, state=MemberState.STABLE, assigned=assigned)


def _removal(view: GroupsView, group: ShareGroup, member: ShareMember, reply: ReplyT) -> Result[Entry, ReplyT]:
    """Remove the member; the next heartbeat of another member computes new targets."""
    left = {member_id: each for member_id, each in group.members.items() if member_id != member.member_id}
    return Result(
        [
            *entries.RECORDS.member_tombstones(group.group_id, member.member_id),
            entries.epoch_entry(group.group_id, group.epoch + 1, metadata_hash(group.names_with(left), view.topics)),
        ],
        reply,
        timers=[Timer(_timer_key(group.group_id, member.member_id), None)],
    )
