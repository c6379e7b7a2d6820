"""ConsumerGroupHeartbeat: members join, stay, report what they subscribe to and own, and learn their assignment.

A heartbeat without news, in a group in which nothing changed, writes nothing and computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.groups.assign.spec import Partitions
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.entries import RECORDS, current_entry, member_entry, target_entry
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.leave import TIMEOUTS, check_instance, watch_revocation
from ottla.groups.consumer.member import ConsumerMember, without_epochs
from ottla.groups.consumer.reconcile import Reported
from ottla.groups.consumer.regexes import MayDescribe, update_regexes
from ottla.groups.consumer.upgrade import upgrade
from ottla.groups.modern.group import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.group_settings import CONSUMER_HEARTBEAT_INTERVAL_MS, CONSUMER_SESSION_TIMEOUT_MS
from ottla.model.ids import random_uuid, uuid_text
from ottla.model.settings.groups import GROUP_CONSUMER_MAX_SIZE


class ConsumerHeartbeatReply(NamedTuple):
    """The answer to a heartbeat; without an assignment the member keeps the one it has."""

    member_id: str
    epoch: int
    interval_ms: int
    assignment: Partitions | None


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat:
    """A heartbeat whose fields were checked (`checks.py`). None, or -1 for the timeout, means unchanged."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topics: frozenset[str] | None = None
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    owned: Reported = None
    client_id: str = ""
    client_host: str = ""
    may_describe: MayDescribe | None = None  # which topics the client may describe; None: all

    @property
    def is_full(self) -> bool:
        """Whether it reports all fields: then the member may not know the last answer, and gets its assignment
        again.
        """
        subscribes = self.subscribed_topics is not None or self.subscribed_regex is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ConsumerHeartbeatReply]:
        joins = self.epoch == JOIN_EPOCH
        draft = draft_to_join(view, self.group_id, now_ms, create=joins)
        check_full(draft, self.member_id)
        member_id = self.member_id or uuid_text(random_uuid(view.rng))
        old = self._static_member(draft, member_id) if self.instance_id is not None else self._member(draft, member_id)
        new = self._updated(old)
        members = {**draft.group.members, member_id: new} if new is not old else draft.group.members
        new = self._advance(draft, old, new, members)
        TIMEOUTS.keep_session(draft, member_id, draft.setting(CONSUMER_SESSION_TIMEOUT_MS))
        changed = new.assigned is not old.assigned and new.assigned != old.assigned
        return draft.result(
            ConsumerHeartbeatReply(
                member_id,
                new.epoch,
                draft.setting(CONSUMER_HEARTBEAT_INTERVAL_MS),
                without_epochs(new.assigned) if joins or self.is_full or changed else None,
            )
        )

    def _advance(
        self, draft: ConsumerDraft, old: ConsumerMember, new: ConsumerMember, members: Mapping[str, ConsumerMember]
    ) -> ConsumerMember:
        """Update subscription, target and current assignment, in this order."""
        topics_changed = draft.describe(old, new)
        regex = update_regexes(draft, old, new, self.may_describe)
        bump = topics_changed or regex.resolved or draft.must_bump
        if bump or draft.group.metadata_stale:
            draft.refresh(members, bump=bump)
        target_epoch, target = draft.assign(new, members)
        changed = topics_changed or regex.updated
        reconciled = draft.reconcile(new, target_epoch, target, changed=changed, reported=self.owned)
        watch_revocation(draft, new, reconciled)
        return reconciled

    def _member(self, draft: ConsumerDraft, member_id: str) -> ConsumerMember:
        if self.epoch == JOIN_EPOCH and member_id not in draft.group.members:
            return ConsumerMember(member_id)
        member = draft.group.member(member_id)
        check_epoch(member, self.epoch, self.owned)
        return member

    def _static_member(self, draft: ConsumerDraft, member_id: str) -> ConsumerMember:
        assert self.instance_id is not None
        existing = draft.group.static_member(self.instance_id)
        if self.epoch != JOIN_EPOCH:
            existing = check_instance(existing, member_id, self.instance_id)
            check_epoch(existing, self.epoch, self.owned)
            return existing
        if existing is None:
            return draft.group.members.get(member_id) or ConsumerMember(member_id)
        if existing.classic is None and existing.epoch != STATIC_LEAVE_EPOCH:
            raise ApiError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {self.instance_id} cannot join the group because the "
                f"instance id is owned by {existing.member_id} member.",
            )
        return replace_static(draft, existing, member_id)

    def _updated(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member with the heartbeat's changes; the same object if there are none."""
        new = member
        told = (self.instance_id, self.rack_id, self.subscribed_topics, self.subscribed_regex, self.server_assignor)
        if any(each is not None for each in told) or self.rebalance_timeout_ms != -1 or member.classic is not None:
            new = replace(
                member,
                instance_id=_or(self.instance_id, member.instance_id),
                rack_id=_or(self.rack_id, member.rack_id),
                rebalance_timeout_ms=(
                    self.rebalance_timeout_ms if self.rebalance_timeout_ms != -1 else member.rebalance_timeout_ms
                ),
                server_assignor=_or(self.server_assignor, member.server_assignor),
                subscribed_topics=member.subscribed_topics
                if self.subscribed_topics is None
                else self.subscribed_topics,
                subscribed_regex=member.subscribed_regex if self.subscribed_regex is None else self.subscribed_regex,
                classic=None,
            )
        if new.client_id != self.client_id or new.client_host != self.client_host:
            new = replace(new, client_id=self.client_id, client_host=self.client_host)
        return new


def draft_to_join(view: GroupsView, group_id: str, now_ms: int, *, create: bool) -> ConsumerDraft:
    """Return a draft of the existing group, of a new one, or of one that a classic group is upgraded to;
    GROUP_ID_NOT_FOUND.
    """
    found = view.state.groups.get(group_id)
    if isinstance(found, ConsumerGroup):
        return ConsumerDraft(view, found, now_ms)
    if found is None:
        if not create:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerDraft(view, ConsumerGroup(group_id), now_ms)
    if not create or not isinstance(found, ClassicGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return upgrade(view, found, now_ms)


def check_full(draft: ConsumerDraft, member_id: str) -> None:
    if member_id not in draft.group.members:
        draft.group.check_size(draft.view.setting(GROUP_CONSUMER_MAX_SIZE))


def check_epoch(member: ConsumerMember, epoch: int, owned: Reported) -> None:
    """Check the member's epoch. A member that missed the last answer sends the epoch before it, which is accepted if it
    owns only partitions that are still assigned to it.
    """
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    if epoch == member.previous_epoch and epoch < member.epoch and _is_within(owned, member):
        return
    than = "greater" if epoch > member.epoch else "smaller"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {than} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def replace_static(draft: ConsumerDraft, existing: ConsumerMember, member_id: str) -> ConsumerMember:
    """Replace a static member that rejoins under another member id; the new one takes over its assignment."""
    group_id = draft.group.group_id
    member = replace(existing, member_id=member_id, epoch=0, previous_epoch=0)
    draft.anticipate(
        [
            *RECORDS.member_tombstones(group_id, existing.member_id),
            member_entry(group_id, member),
            target_entry(group_id, member_id, draft.group.target_of(existing.member_id)),
            current_entry(group_id, member),
        ]
    )
    return draft.group.members[member_id]


def _is_within(owned: Reported, member: ConsumerMember) -> bool:
    if owned is None:
        return False
    return all(each <= member.assigned.get(topic_id, {}).keys() for topic_id, each in owned.items())


def _or(value: str | None, otherwise: str | None) -> str | None:
    return otherwise if value is None else value
