"""How a member moves from its current assignment to its target, without two members ever owning the same partition.

    Stable ──a new target takes something away──▶ UnrevokedPartitions ──the member confirmed──┐
      ▲  └──────────────takes nothing away────────────────────────────────┐                   │
      │                                                                   ▼                   ▼
      └──────────────all of the target is free──────────────── UnreleasedPartitions ◀── others still own some of it

A member keeps its epoch until it has revoked what it must; it confirms that by a heartbeat whose list of owned
partitions lacks them. Then it moves to the epoch of the target and gets the partitions of it that are free, the others
when their owners have revoked them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ottla.groups.assign.spec import Partitions
from ottla.groups.consumer.member import NO_OWNED, ConsumerMember, Owned
from ottla.groups.modern.group import MemberState
from ottla.model.errors import ApiError, ErrorCode

# The partitions that a member reports as owned: topic id → partitions; None: not reported.
Reported = Mapping[bytes, frozenset[int]] | None


class ConsumerGoal(NamedTuple):
    """What a member is being reconciled to."""

    epoch: int
    target: Partitions
    subscribed: Callable[[], frozenset[bytes]]  # ids of all topics it reads now; the target may be older
    subscription_changed: bool
    is_free: Callable[[bytes, int], bool]  # whether no other member owns the partition


def reconcile(member: ConsumerMember, goal: ConsumerGoal, reported: Reported) -> ConsumerMember:
    """Return the member's next state; the same object if nothing changes."""
    if member.state is MemberState.STABLE and member.epoch == goal.epoch:
        return _without_unsubscribed(member, goal, reported) if goal.subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _owns_any(reported, member.pending_revocation):
        return _without_unsubscribed(member, goal, reported) if goal.subscription_changed else member
    if member.state is MemberState.UNKNOWN:
        if reported is None or reported:
            raise ApiError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return _next(member, goal, reported, goal.epoch)
    return _next(member, goal, reported, member.epoch)


def _owns_any(reported: Reported, partitions: Owned) -> bool:
    """Whether the member may still own some of these; one that does not report its partitions may own any."""
    if reported is None:
        return True
    return any(not each.isdisjoint(partitions.get(topic_id, ())) for topic_id, each in reported.items())


def _without_unsubscribed(member: ConsumerMember, goal: ConsumerGoal, reported: Reported) -> ConsumerMember:
    """Revoke partitions of topics that it no longer subscribes to at once, since a new target may take a while."""
    subscribed = goal.subscribed()
    gone = {topic_id: each for topic_id, each in member.assigned.items() if topic_id not in subscribed}
    if not gone:
        return member
    assigned = {topic_id: each for topic_id, each in member.assigned.items() if topic_id in subscribed}
    pending = dict(member.pending_revocation)
    for topic_id, each in gone.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **each}
    if not _owns_any(reported, pending):
        return replace(member, previous_epoch=member.epoch, assigned=assigned)
    return replace(
        member,
        state=MemberState.UNREVOKED_PARTITIONS,
        previous_epoch=member.epoch,
        assigned=assigned,
        pending_revocation=pending,
    )


def _next(member: ConsumerMember, goal: ConsumerGoal, reported: Reported, epoch: int) -> ConsumerMember:
    subscribed = goal.subscribed()
    target = {topic_id: each for topic_id, each in goal.target.items() if topic_id in subscribed}
    keep: dict[bytes, dict[int, int]] = {}
    revoke: dict[bytes, dict[int, int]] = {}
    for topic_id, owned in member.assigned.items():
        wanted = target.get(topic_id, frozenset())
        for partition, since in owned.items():
            (keep if partition in wanted else revoke).setdefault(topic_id, {})[partition] = since
    if revoke and _owns_any(reported, revoke):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=keep,
            pending_revocation=revoke,
        )
    complete = True
    for topic_id, wanted in target.items():
        for partition in sorted(wanted.difference(keep.get(topic_id, ()))):
            if goal.is_free(topic_id, partition):
                keep.setdefault(topic_id, {})[partition] = goal.epoch
            else:
                complete = False
    return replace(
        member,
        state=MemberState.STABLE if complete else MemberState.UNRELEASED_PARTITIONS,
        epoch=goal.epoch,
        previous_epoch=member.epoch,
        assigned=keep,
        pending_revocation=NO_OWNED,
    )
