"""How a voter in doubt about its own past finds out whether the whole quorum is new: it asks every other voter.

The rules are those of `lost_disk`.
"""

from __future__ import annotations

from ottla.model.ids import LeaderEpoch
from ottla.raft import following, lost_disk
from ottla.raft.config import NEVER_MS
from ottla.raft.journal import EMPTY_LOG
from ottla.raft.roles import Doubt, EmptyLogSeen, Follower, Unattached
from ottla.raft.state import RaftState
from ottla.raft.vote_requests import ask_for_vote
from ottla.wire.message import Response
from ottla.wire.messages.quorum.vote import VoteRequest, VoteResponse


def heard(node: RaftState, voter_id: int, epoch: LeaderEpoch) -> None:
    """Note that a voter said that its log is empty."""
    doubt, state = node.doubt, node.state
    if doubt is None or voter_id == node.me.id or voter_id not in node.voters:
        return
    was_complete = lost_disk.may_stand(node)
    doubt.empty[voter_id] = EmptyLogSeen(node.now_ms, epoch)
    if isinstance(state, Follower):
        lost_disk.followed(node)
    elif isinstance(state, Unattached) and lost_disk.may_stand(node) and not was_complete:
        state.deadline_ms = NEVER_MS
        # one turn later, so that the other voters complete their roll calls, too
        following.stand_in_turn(node, state, turns_before=1)


def wait(node: RaftState) -> int:
    """Look for a leader while this node may not stand for election; return when to go on."""
    if node.doubt is None or not node.is_voter:
        return following.fetch_from_anyone(node)
    lost_disk.report_doubt(node, node.doubt)
    return following.fetch_from_anyone(node) if node.journal.end_offset else _call_roll(node, node.doubt)


def _call_roll(node: RaftState, doubt: Doubt) -> int:
    """Ask the voters whose word is missing or about to expire; return when to go on.

    Every answer also names the leader, if there is one.
    """
    wake_ms = node.now_ms + node.config.roll_call_ms // 2
    renew_ms = node.now_ms - node.config.roll_call_ms // 2
    for voter in node.voters.others(node.me.id):
        said = doubt.empty.get(voter.id)
        if voter.address is None or (said is not None and said.at_ms > renew_ms and said.epoch <= node.epoch):
            continue
        if node.inflight.is_ready(voter.id, node.now_ms):
            doubt.asked[voter.id] = ask_for_vote(node, voter, pre_vote=True)
        wake_ms = min(wake_ms, node.inflight.wake_ms(voter.id, node.now_ms))
    return wake_ms


def answered(node: RaftState, voter_id: int, request: VoteRequest, granted: bool, epoch: LeaderEpoch) -> None:
    """Note the answer to a pre-vote for an empty log: a voter that grants it has an empty log, too.

    A voter that refuses is asked again later.
    """
    ask = request.topics[0].partitions[0]
    if node.doubt is None or (ask.last_offset, ask.last_offset_epoch) != EMPTY_LOG:
        return
    if granted:
        heard(node, voter_id, epoch)
    else:
        node.doubt.empty.pop(voter_id, None)
        node.inflight.pause(voter_id, node.now_ms)


def answered_late(node: RaftState, number: int, response: Response) -> None:
    """Note an answer that was not expected any more, because there is a leader now.

    The voter's log is empty nevertheless.
    """
    if node.doubt is None or not isinstance(response, VoteResponse) or response.error_code or not response.topics:
        return
    said = response.topics[0].partitions[0]
    for voter_id, asked in node.doubt.asked.items():
        if asked == number and said.vote_granted:
            heard(node, voter_id, said.leader_epoch)
            return
