"""Doubt: the restrictions on a voter that started with an empty disk and cannot prove that it is new (ADR 0022).

Such a voter may have lost an earlier disk, and with it records that count as committed because it had them, and votes
that it granted. No other node can tell it from a voter that starts for the first time.

Rules:
- With an empty log, the voter in doubt calls the roll: it asks every other voter, by pre-votes, whether that voter's
  log is empty, too. If all say so within `roll_call_ms`, nothing was ever committed. The doubt then ends with the next
  vote, candidacy or leader of an epoch above all of theirs: a lost vote cannot have been for an epoch above those.
- Otherwise the voter neither votes nor stands for election. For `quarantine_ms` its fetches do not count: until then a
  candidate may hold its lost vote, and a leader that lost an election by that vote may not have noticed. Afterwards its
  fetches count, and the doubt ends when the voter has on disk what a leader has committed in its own epoch.
- A voter that says that its log is empty begins its quarantine anew: its word stays true for as long as other voters
  rely on it.
- There is no doubt where a majority is all of the voters: every election then needs the vote of a voter that lost
  nothing.
"""

from __future__ import annotations

from ottla.model.ids import LeaderEpoch
from ottla.model.limits import RAFT_DOUBT_FIRST_REPORT_MS, RAFT_DOUBT_REPORT_MS
from ottla.raft import effects
from ottla.raft.journal import EMPTY_LOG, OffsetAndEpoch
from ottla.raft.roles import Doubt, Follower
from ottla.raft.state import RaftState


def begin(node: RaftState) -> None:
    """Begin the quarantine when the node starts."""
    if node.doubt is not None:
        node.doubt.quarantine_until_ms = node.now_ms + node.config.quarantine_ms


def end(node: RaftState) -> None:
    if node.doubt is not None:
        node.journal.end_doubt()
        node.doubt = None
        node.emit(effects.DoubtChanged(is_over=True))


def is_quarantined(node: RaftState) -> bool:
    """Whether the fetches of this voter must not count yet."""
    return node.doubt is not None and node.is_voter and node.now_ms < node.doubt.quarantine_until_ms


# --- with an empty log


def may_take_part(node: RaftState, epoch: LeaderEpoch, candidate_id: int = -1) -> bool:
    """Whether this node may stand for election, or vote for that candidate, in an epoch."""
    if node.doubt is None:
        return True
    return node.end == EMPTY_LOG and not unheard(node, node.doubt, epoch, candidate_id)


def may_stand(node: RaftState) -> bool:
    """Whether this node may stand for election.

    A node must stand while its own removal from the voters may not be committed yet: its log may be the only one with
    that removal, and then no other node can be elected. Its own vote does not count.
    """
    is_elector = node.is_voter or node.history.may_hold(node.me, node.high_watermark)
    return is_elector and may_take_part(node, LeaderEpoch(node.epoch + 1))


def may_vote(node: RaftState, candidate_id: int) -> bool:
    """Whether this node may vote for that candidate in the current epoch."""
    allowed = may_take_part(node, node.epoch, candidate_id)
    if node.doubt is not None and not allowed:
        report_doubt(node, node.doubt)
    return allowed


def may_answer(node: RaftState, last: OffsetAndEpoch) -> bool:
    """Whether to grant a pre-vote to a node whose log ends at `last`.

    Between empty logs a pre-vote commits to nothing: it only says that this log is empty, too.
    """
    if node.doubt is None:
        return True
    if node.journal.end_offset or last.offset:
        report_doubt(node, node.doubt)
        return False
    extend_quarantine(node)
    return True


def unheard(node: RaftState, doubt: Doubt, epoch: LeaderEpoch, candidate_id: int = -1) -> tuple[int, ...]:
    """Return the voters that did not lately say, in an epoch below `epoch`, that their logs are empty.

    A candidate says so by its request for a vote, and may do so in `epoch` itself: if this node lost a vote of that
    epoch, it was for the same candidate.
    """
    since_ms = node.now_ms - node.config.roll_call_ms
    return tuple(
        voter.id
        for voter in node.voters.others(node.me.id)
        if (said := doubt.empty.get(voter.id)) is None
        or said.at_ms < since_ms
        or said.epoch - (voter.id == candidate_id) >= epoch
    )


def extend_quarantine(node: RaftState) -> None:
    """Extend the quarantine, because this node says that its log is empty."""
    if node.doubt is not None:
        until_ms = node.now_ms + node.config.quarantine_ms
        node.doubt.quarantine_until_ms = max(node.doubt.quarantine_until_ms, until_ms)


# --- with a leader


def followed(node: RaftState) -> None:
    """End the doubt if the leader, for which this node did not vote, is the first of a new cluster."""
    if node.doubt is not None and not unheard(node, node.doubt, node.epoch, node.leader_id):
        end(node)


def fetched(node: RaftState, replica_id: int, offset: int, high_watermark: int) -> None:
    """Look at a leader's answer to a fetch from `offset`; its high watermark is one of its own epoch, or -1."""
    doubt = node.doubt
    if doubt is None or replica_id < 0 or high_watermark < 0:
        return
    if doubt.has_reached(high_watermark, node.epoch, offset):
        end(node)


# --- reporting to the operator


def report_doubt(node: RaftState, doubt: Doubt) -> None:
    """Report, now and then, that there is no leader and that this node does not vote."""
    state = node.state
    if isinstance(state, Follower) and not state.leader_gone and node.now_ms < state.deadline_ms:
        return
    if doubt.report_ms is None:
        doubt.report_ms = node.now_ms + RAFT_DOUBT_FIRST_REPORT_MS
    if node.now_ms >= doubt.report_ms:
        doubt.report_ms = node.now_ms + RAFT_DOUBT_REPORT_MS
        node.emit(effects.DoubtChanged(is_over=False, unheard=unheard(node, doubt, LeaderEpoch(node.epoch + 1))))
