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

from ottla.model.limits import RAFT_DOUBT_FIRST_MS, RAFT_DOUBT_TELL_MS
from ottla.raft import effects
from ottla.raft.journal import OffsetAndEpoch
from ottla.raft.roles import Doubt, Follower
from ottla.raft.state import RaftState

_EMPTY = OffsetAndEpoch(0, 0)


def begin(node: RaftState) -> None:
    """The node starts."""
    if node.doubt is not None:
        node.doubt.quarantine_until_ms = node.now_ms + node.config.quarantine_ms


def end(node: RaftState) -> None:
    if node.doubt is not None:
        node.journal.end_doubt()
        node.doubt = None
        node.emit(effects.DoubtChanged(is_over=True))


def is_quarantined(node: RaftState) -> bool:
    """Whether what this voter has must not count yet."""
    return node.doubt is not None and node.is_voter and node.now_ms < node.doubt.quarantine_until_ms


# --- with an empty log


def may_take_part(node: RaftState, epoch: int, candidate_id: int = -1) -> bool:
    """Whether this node may stand, or vote for that candidate, in an epoch."""
    if node.doubt is None:
        return True
    return node.end == _EMPTY and not unheard(node, node.doubt, epoch, candidate_id)


def may_vote(node: RaftState, candidate_id: int) -> bool:
    """For that candidate, now."""
    allowed = may_take_part(node, node.epoch, candidate_id)
    if node.doubt is not None and not allowed:
        complain(node, node.doubt)
    return allowed


def may_answer(node: RaftState, last: OffsetAndEpoch) -> bool:
    """Whether to say yes to a pre-vote of one whose log ends there. Among empty logs that binds nobody, and says no
    more than that there is nothing here either."""
    if node.doubt is None:
        return True
    if node.journal.end_offset or last.offset:
        complain(node, node.doubt)
        return False
    told(node)
    return True


def unheard(node: RaftState, doubt: Doubt, epoch: int, candidate_id: int = -1) -> tuple[int, ...]:
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


def told(node: RaftState) -> None:
    """This node said that its log is empty."""
    if node.doubt is not None:
        until_ms = node.now_ms + node.config.quarantine_ms
        node.doubt.quarantine_until_ms = max(node.doubt.quarantine_until_ms, until_ms)


# --- with a leader


def followed(node: RaftState) -> None:
    """A leader of a new cluster, that this node did not vote for, is no reason for doubt either."""
    if node.doubt is not None and not unheard(node, node.doubt, node.epoch, node.leader_id):
        end(node)


def fetched(node: RaftState, replica_id: int, offset: int, high_watermark: int) -> None:
    """A leader's answer to a fetch of what lies behind `offset`; its high watermark is one of its own epoch, or -1."""
    doubt = node.doubt
    if doubt is None or replica_id < 0 or high_watermark < 0:
        return
    if doubt.has_reached(high_watermark, node.epoch, offset):
        end(node)


# --- what whoever runs this node should know


def complain(node: RaftState, doubt: Doubt) -> None:
    """There is no leader, and this node's vote is missing: now and then it says so."""
    state = node.state
    if isinstance(state, Follower) and not state.leader_gone and node.now_ms < state.deadline_ms:
        return
    if doubt.tell_ms is None:
        doubt.tell_ms = node.now_ms + RAFT_DOUBT_FIRST_MS
    if node.now_ms >= doubt.tell_ms:
        doubt.tell_ms = node.now_ms + RAFT_DOUBT_TELL_MS
        node.emit(effects.DoubtChanged(is_over=False, unheard=unheard(node, doubt, node.epoch + 1)))


def may_stand(node: RaftState) -> bool:
    """Whether this node may stand for election. One whose own removal may not be committed yet must: it may be the
    only one whose log has that removal, and then nobody else can be elected. Its own vote does not count."""
    is_elector = node.is_voter or node.history.may_hold(node.me, node.high_watermark)
    return is_elector and may_take_part(node, node.epoch + 1)
