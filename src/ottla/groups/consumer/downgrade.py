"""Downgrade of a live consumer group to a classic group, when the last member of the new protocol leaves.

Generations continue from the epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState, MemberProtocol
from ottla.groups.classic.journal import entry_of
from ottla.groups.classic.rebalance import keep_session, prepare
from ottla.groups.classic.turn import Turn
from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.group import PROTOCOL_TYPE
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.protocol import write_assignment
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.settings.groups import GROUP_CONSUMER_MIGRATION_POLICY, GROUP_MAX_SIZE

ReplyT = TypeVar("ReplyT")
_DOWNGRADES = ("downgrade", "bidirectional")


def migration_policy(view: GroupsView) -> str:
    policy: str = view.setting(GROUP_CONSUMER_MIGRATION_POLICY)
    return policy.lower()


def may_downgrade(draft: ConsumerDraft, gone: Sequence[str], *, coming: int = 0) -> bool:
    """Whether only members of the classic protocol remain (or join), and the settings allow the downgrade."""
    left = [member for member_id, member in draft.group.members.items() if member_id not in gone]
    return (
        bool(left or coming)
        and all(member.classic is not None for member in left)
        and migration_policy(draft.view) in _DOWNGRADES
        and len(left) + coming <= draft.view.setting(GROUP_MAX_SIZE)
    )


def downgrade(draft: ConsumerDraft, gone: Sequence[str], reply: ReplyT) -> Result[Entry, ReplyT]:
    """Continue as a classic group, with a rebalance of the remaining members."""
    draft.records += draft.group.tombstones()
    turn = classic_turn(draft, gone)
    prepare(turn)
    return merged(draft, turn, reply)


def classic_turn(draft: ConsumerDraft, gone: Sequence[str]) -> Turn[None]:
    """Return a turn with the classic group, as if its members had just synced; it writes the group's record."""
    group = draft.group
    members = {
        member_id: _classic_member(draft, member)
        for member_id, member in group.members.items()
        if member_id not in gone
    }
    classic = ClassicGroup(
        group.group_id,
        state=ClassicState.STABLE,
        generation=draft.epoch,
        protocol_type=PROTOCOL_TYPE,
        leader=next(iter(members)),
        members=MappingProxyType(members),
        state_since_ms=draft.now_ms,
    )
    classic = replace(classic, protocol=classic.elected_protocol()).with_subscriptions()
    turn: Turn[None] = Turn(draft.view, classic, draft.now_ms)
    turn.records.append(entry_of(turn.group))
    for member in members.values():
        keep_session(turn, member)
    return turn


def _classic_member(draft: ConsumerDraft, member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    protocols = member.classic.protocols
    target = draft.group.target_of(member.member_id)
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(MemberProtocol(each.name, each.metadata) for each in protocols),
        assignment=write_assignment(target, draft.view.topics, protocols[0].metadata),
    )


def merged(draft: ConsumerDraft, turn: Turn[None], reply: ReplyT) -> Result[Entry, ReplyT]:
    """Combine both in one Result: the end of the consumer group and the start of the classic group."""
    result = turn.result()
    return Result(
        records=[*draft.records, *result.records],
        reply=reply,
        timers=[*draft.timers, *result.timers],
        answers=[*draft.answers, *result.answers],
        notes=result.notes,
    )
