"""Upgrade of a live classic group to a consumer group, when the first member of the new protocol joins.

Epochs continue from the generations, so members' commits are not refused. The existing members go on with JoinGroup and
SyncGroup (`classic_members.py`) until they are replaced one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.turn import JOIN, SYNC, JoinReply, SyncReply, Turn
from ottla.groups.consumer.apply import apply_to
from ottla.groups.consumer.downgrade import migration_policy
from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.entries import RECORDS, current_entry, epoch_entry, member_entry, target_entry
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.leave import TIMEOUTS
from ottla.groups.consumer.member import ClassicProtocol, ClassicSide, ConsumerMember, with_epoch, without_epochs
from ottla.groups.consumer.protocol import by_ids, read_assignment, read_subscription
from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Answer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.groups import GROUP_CONSUMER_MAX_SIZE
from ottla.wire.types import WireError

_UPGRADES = ("upgrade", "bidirectional")


def upgrade(view: GroupsView, classic: ClassicGroup, now_ms: int) -> ConsumerDraft:
    """Return a draft of the consumer group that replaces a classic group; GROUP_ID_NOT_FOUND if that is not allowed."""
    if classic.is_empty:
        draft = ConsumerDraft(view, ConsumerGroup(classic.group_id), now_ms)
        draft.records += classic.tombstones()
        return draft
    _check_upgrade(view, classic)
    try:
        members = [_new_member(view, classic, member) for member in classic.members.values()]
    except WireError as error:
        raise _not_upgraded(classic, "the embedded consumer protocol is malformed") from error
    entries = _entries(view, classic, members)
    group = ConsumerGroup(classic.group_id)
    for entry in entries:
        apply_to(group, entry)
    draft = ConsumerDraft(view, group, now_ms)
    draft.records += [*classic.tombstones(), *entries]
    # the members' assignments may belong to another generation
    draft.must_bump = classic.state is not ClassicState.STABLE
    _release_waiting(draft, classic)
    return draft


def _check_upgrade(view: GroupsView, classic: ClassicGroup) -> None:
    if migration_policy(view) not in _UPGRADES:
        raise _not_upgraded(classic, "online upgrade is disabled")
    if not classic.uses_consumer_protocol:
        raise _not_upgraded(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > view.setting(GROUP_CONSUMER_MAX_SIZE):
        raise _not_upgraded(classic, "the group size exceeds the consumer group maximum size")


def _not_upgraded(classic: ClassicGroup, why: str) -> ApiError:
    text = f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _new_member(view: GroupsView, classic: ClassicGroup, member: ClassicMember) -> ConsumerMember:
    subscription = read_subscription(member.metadata(classic.protocol) or member.protocols[0].metadata)
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _not_upgraded(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade",
        )
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSide(
            member.session_timeout_ms, tuple(ClassicProtocol(each.name, each.metadata) for each in member.protocols)
        ),
        epoch=classic.generation,
        previous_epoch=classic.generation,
        assigned=with_epoch(by_ids(assignment.assigned_partitions, view.topics), classic.generation),
    )


def _entries(view: GroupsView, classic: ClassicGroup, members: Sequence[ConsumerMember]) -> list[Entry]:
    group_id = classic.group_id
    names = frozenset().union(*(member.subscribed_topics for member in members))
    return [
        *(member_entry(group_id, member) for member in members),
        epoch_entry(group_id, classic.generation, metadata_hash(names, view.topics)),
        *(target_entry(group_id, member.member_id, without_epochs(member.assigned)) for member in members),
        RECORDS.target_epoch(group_id, classic.generation, 0),
        *(current_entry(group_id, member) for member in members),
    ]


def _release_waiting(draft: ConsumerDraft, classic: ClassicGroup) -> None:
    """Tell members that wait in a rebalance of the classic group to join again; their sessions go on."""
    for member in classic.members.values():
        if member.is_awaiting_join:
            reply = JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            draft.answers.append(Answer((JOIN, classic.group_id, member.member_id), reply))
        if member.is_awaiting_sync:
            answer = SyncReply(ErrorCode.REBALANCE_IN_PROGRESS)
            draft.answers.append(Answer((SYNC, classic.group_id, member.member_id), answer))
        TIMEOUTS.keep_session(draft, member.member_id, member.session_timeout_ms)
    turn: Turn[None] = Turn(draft.view, classic, draft.now_ms)
    draft.cancel(turn.join_key())
    draft.cancel(turn.sync_key())
