"""How a member moves from its present tasks to its target, without an active task ever having two owners.

    Stable ──a new target takes something away──▶ UnrevokedTasks ──the member confirmed──┐
      ▲  └────────────takes nothing away────────────────────────────┐                    │
      │                                                             ▼                    ▼
      └──────────────all of the target is free──────────── UnreleasedTasks ◀── others still own some of it

The member confirms a revocation by a heartbeat whose list of tasks lacks the revoked ones. A process never has two
copies of a task, active or standby: their local state would be the same directory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ottla.groups.modern.group import MemberState
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.tasks import (
    NOTHING_OWNED,
    OwnedTasks,
    TaskId,
    Tasks,
    TaskSet,
    each,
    gathered,
    without_epochs,
)
from ottla.model.errors import ApiError, ErrorCode

Free = Callable[[TaskId], bool]


class StreamsGoal(NamedTuple):
    """What a member is being reconciled to."""

    epoch: int
    target: TaskSet
    is_active_free: Free
    is_copy_free: Free


class _Difference(NamedTuple):
    """The tasks of one role to keep, revoke and take; `is_blocked`: other tasks of the target are not free yet."""

    keep: Tasks
    revoke: Tasks
    take: Tasks
    is_blocked: bool


def reconcile(member: StreamsMember, goal: StreamsGoal, reported: TaskSet | None) -> StreamsMember:
    """Return the member's next state; the same object if nothing changes. `reported` None: the member did not list its
    tasks.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return member
        case MemberState.UNREVOKED_PARTITIONS:
            if reported is None or reported.overlaps(member.pending_revocation):
                return member
            return _next(member, goal, reported, member.epoch + 1)
        case MemberState.UNKNOWN:
            if reported is None or not reported.is_empty:
                raise ApiError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
                )
            return _next(member, goal, reported, goal.epoch)
        case _:
            return _next(member, goal, reported, member.epoch)


def _next(member: StreamsMember, goal: StreamsGoal, reported: TaskSet | None, epoch: int) -> StreamsMember:
    owned = without_epochs(member.assigned)
    active = _difference(owned.active, goal.target.active, goal.is_active_free)
    standby = _difference(owned.standby, goal.target.standby, goal.is_copy_free)
    warmup = _difference(owned.warmup, goal.target.warmup, goal.is_copy_free)
    gone = OwnedTasks(_since(member, active.revoke), standby.revoke, warmup.revoke)
    if not gone.is_empty and (reported is None or reported.overlaps(gone)):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=OwnedTasks(_since(member, active.keep), standby.keep, warmup.keep),
            pending_revocation=gone,
        )
    held = {name: dict(partitions) for name, partitions in _since(member, active.keep).items()}
    for task in each(active.take):
        held.setdefault(task.subtopology, {})[task.partition] = goal.epoch
    is_blocked = active.is_blocked or standby.is_blocked or warmup.is_blocked
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if is_blocked else MemberState.STABLE,
        epoch=goal.epoch,
        previous_epoch=member.epoch,
        assigned=OwnedTasks(held, _both(standby.keep, standby.take), _both(warmup.keep, warmup.take)),
        pending_revocation=NOTHING_OWNED,
    )


def _difference(owned: Tasks, target: Tasks, is_free: Free) -> _Difference:
    has, wants = set(each(owned)), set(each(target))
    free = {task for task in wants - has if is_free(task)}
    return _Difference(gathered(has & wants), gathered(has - wants), gathered(free), len(free) < len(wants - has))


def _since(member: StreamsMember, tasks: Tasks) -> dict[str, dict[int, int]]:
    """Return the tasks with the epochs in which the member got them."""
    active = member.assigned.active
    return {name: {one: active[name][one] for one in sorted(partitions)} for name, partitions in tasks.items()}


def _both(some: Tasks, others: Tasks) -> Tasks:
    return gathered((*each(some), *each(others)))
