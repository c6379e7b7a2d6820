"""Doubt: what a voter may do whose disk was empty when it started, and that nobody vouches for (ADR 0022).

It may have had a disk before, and have lost with it records that count as committed because it had them, and votes
that it gave. Nobody can tell it from a voter that starts for the first time.

Rules:
- With an empty log it calls the roll: it asks every other voter, by pre-votes, whether its log is empty, too. If all
  say so within `roll_call_ms` nothing was ever committed, and the doubt is over with the next vote, candidacy or leader
  of an epoch above all of theirs: what it voted for before was in none above.
- Otherwise it neither votes nor stands for election. For `quarantine_ms` it reads as somebody who does not count:
  until then a candidate may hold its lost vote, and a leader that lost an election by it may not have noticed.
  Afterwards its fetches count, and the doubt is over when it has on disk what a leader has committed in its own epoch.
- Whoever says that its log is empty is in quarantine from then on: what it said holds for as long as others rely on it.
- A majority that is everybody leaves no room for doubt: there the word of one who lost nothing is always needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.model.limits import RAFT_DOUBT_FIRST_MS, RAFT_DOUBT_TELL_MS
from ottla.raft import effects, election, following
from ottla.raft.config import NEVER_MS
from ottla.raft.port import Place
from ottla.raft.roles import Follower, Unattached
from ottla.wire.message import Response
from ottla.wire.messages.quorum.vote import VoteRequest, VoteResponse

if TYPE_CHECKING:
    from ottla.raft.node import RaftNode

_EMPTY = Place(0, 0)


class Empty(NamedTuple):
    """A voter said that its log is empty: when, and in which epoch it was."""

    at_ms: int
    epoch: int


class Doubt:
    """What a voter in doubt knows; on disk is only that it is."""

    def __init__(self) -> None:
        self.empty: dict[int, Empty] = {}
        self.asked: dict[int, int] = {}  # voter → the number of the last question
        self.quarantine_until_ms = 0
        self.tell_ms: int | None = None  # when whoever runs this node hears (again) that it waits
        self._goal: Place | None = None  # what the leader of an epoch had committed

    def has_reached(self, high_watermark: int, epoch: int, offset: int) -> bool:
        """Whether `offset`, which is on disk, covers what the leader of `epoch` once said that it had committed."""
        if self._goal is None or self._goal.epoch != epoch:
            self._goal = Place(high_watermark, epoch)
        return offset >= self._goal.offset


def begin(node: RaftNode) -> None:
    """The node starts."""
    if node.doubt is not None:
        node.doubt.quarantine_until_ms = node.now_ms + node.config.quarantine_ms


def end(node: RaftNode) -> None:
    if node.doubt is not None:
        node.journal.end_doubt()
        node.doubt = None
        node.emit(effects.Doubt(is_over=True))


def is_quarantined(node: RaftNode) -> bool:
    """Whether what this voter has must not count yet."""
    return node.doubt is not None and node.is_voter and node.now_ms < node.doubt.quarantine_until_ms


# --- with an empty log


def heard(node: RaftNode, voter_id: int, epoch: int) -> None:
    """A voter said that its log is empty."""
    doubt, state = node.doubt, node.state
    if doubt is None or voter_id == node.me.id or voter_id not in node.voters:
        return
    was_complete = node.stands
    doubt.empty[voter_id] = Empty(node.now_ms, epoch)
    if isinstance(state, Follower):
        followed(node)
    elif isinstance(state, Unattached) and node.stands and not was_complete:
        state.deadline_ms = NEVER_MS
        following.stand_in_turn(node, state, turns_before=1)  # so that the others know everybody, too


def may_take_part(node: RaftNode, epoch: int, candidate_id: int = -1) -> bool:
    """Whether this node may stand, or vote for that candidate, in an epoch."""
    if node.doubt is None:
        return True
    return node.end == _EMPTY and not _unheard(node, node.doubt, epoch, candidate_id)


def may_vote(node: RaftNode, candidate_id: int) -> bool:
    """For that candidate, now."""
    allowed = may_take_part(node, node.epoch, candidate_id)
    if node.doubt is not None and not allowed:
        complain(node, node.doubt)
    return allowed


def may_answer(node: RaftNode, last: Place) -> bool:
    """Whether to say yes to a pre-vote of one whose log ends there. Among empty logs that binds nobody, and says no
    more than that there is nothing here either."""
    if node.doubt is None:
        return True
    if node.journal.end_offset or last.offset:
        complain(node, node.doubt)
        return False
    told(node)
    return True


def _unheard(node: RaftNode, doubt: Doubt, epoch: int, candidate_id: int = -1) -> tuple[int, ...]:
    """The voters that did not lately say, in an epoch below, that their logs are empty. A candidate says so by asking:
    a vote for it that was lost was for the same one."""
    since_ms = node.now_ms - node.config.roll_call_ms
    return tuple(
        voter.id
        for voter in node.voters.others(node.me.id)
        if (said := doubt.empty.get(voter.id)) is None
        or said.at_ms < since_ms
        or said.epoch - (voter.id == candidate_id) >= epoch
    )


def told(node: RaftNode) -> None:
    """This node said that its log is empty."""
    if node.doubt is not None:
        until_ms = node.now_ms + node.config.quarantine_ms
        node.doubt.quarantine_until_ms = max(node.doubt.quarantine_until_ms, until_ms)


def wait(node: RaftNode) -> int:
    """Nobody leads, and this node must not: look for whoever does; when to go on."""
    if node.doubt is None or not node.is_voter:
        return following.fetch_from_anyone(node)
    complain(node, node.doubt)
    return following.fetch_from_anyone(node) if node.journal.end_offset else _call_roll(node, node.doubt)


def _call_roll(node: RaftNode, doubt: Doubt) -> int:
    """Ask those whose word is missing or about to be too old. Every answer names the leader, too, if there is one."""
    wake_ms = node.now_ms + node.config.roll_call_ms // 2
    renew_ms = node.now_ms - node.config.roll_call_ms // 2
    for voter in node.voters.others(node.me.id):
        said = doubt.empty.get(voter.id)
        if voter.address is None or (said is not None and said.at_ms > renew_ms and said.epoch <= node.epoch):
            continue
        if node.lines.is_ready(voter.id, node.now_ms):
            doubt.asked[voter.id] = election.ask(node, voter, pre_vote=True)
        wake_ms = min(wake_ms, node.lines.wake_ms(voter.id, node.now_ms))
    return wake_ms


def answered(node: RaftNode, voter_id: int, request: VoteRequest, granted: bool, epoch: int) -> None:
    """Who would elect an empty log has none. One that said no is asked again later."""
    ask = request.topics[0].partitions[0]
    if node.doubt is None or (ask.last_offset, ask.last_offset_epoch) != _EMPTY:
        return
    if granted:
        heard(node, voter_id, epoch)
    else:
        node.doubt.empty.pop(voter_id, None)
        node.lines.pause(voter_id, node.now_ms)


def answered_late(node: RaftNode, number: int, response: Response) -> None:
    """An answer that the node waits for no more, because there is a leader now. What it says is true nevertheless."""
    if node.doubt is None or not isinstance(response, VoteResponse) or response.error_code or not response.topics:
        return
    said = response.topics[0].partitions[0]
    for voter_id, asked in node.doubt.asked.items():
        if asked == number and said.vote_granted:
            heard(node, voter_id, said.leader_epoch)
            return


# --- with a leader


def followed(node: RaftNode) -> None:
    """A leader of a new cluster, that this node did not vote for, is no reason for doubt either."""
    if node.doubt is not None and not _unheard(node, node.doubt, node.epoch, node.leader_id):
        end(node)


def fetched(node: RaftNode, replica_id: int, offset: int, high_watermark: int) -> None:
    """A leader's answer to a fetch of what lies behind `offset`; its high watermark is one of its own epoch, or -1."""
    doubt = node.doubt
    if doubt is None or replica_id < 0 or high_watermark < 0:
        return
    if doubt.has_reached(high_watermark, node.epoch, offset):
        end(node)


# --- what whoever runs this node should know


def complain(node: RaftNode, doubt: Doubt) -> None:
    """There is no leader, and this node's vote is missing: now and then it says so."""
    state = node.state
    if isinstance(state, Follower) and not state.leader_gone and node.now_ms < state.deadline_ms:
        return
    if doubt.tell_ms is None:
        doubt.tell_ms = node.now_ms + RAFT_DOUBT_FIRST_MS
    if node.now_ms >= doubt.tell_ms:
        doubt.tell_ms = node.now_ms + RAFT_DOUBT_TELL_MS
        node.emit(effects.Doubt(is_over=False, unheard=_unheard(node, doubt, node.epoch + 1)))
