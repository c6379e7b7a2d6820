"""Elections: asking for votes, first by pre-votes (KIP-996), then by votes, and granting them.

Rules:
- One vote per epoch, on disk before it is granted; only to a candidate whose log is at least as up-to-date as ours.
- A node stands for election only if a majority would elect it now: a node that lost touch with a leader that other
  voters still hear cannot disturb them.
- A node that hears a live leader grants no pre-vote; a node whose leader is gone does.
- A node in doubt about its own past takes part only where `lost_disk` allows it.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID, LeaderEpoch
from ottla.model.limits import RAFT_ELECTION_BACKOFF_MS
from ottla.raft import answers, following, leading, lost_disk, roll_call
from ottla.raft.journal import OffsetAndEpoch, ReplicaKey
from ottla.raft.named_leader import heard_of, named_leader
from ottla.raft.request_checks import is_absurd, refusal
from ottla.raft.roles import Candidate, Follower, Leader, Prospective, Unattached
from ottla.raft.state import RaftState
from ottla.raft.transitions import become, become_follower, become_prospective, become_unattached
from ottla.raft.vote_requests import ask_for_vote
from ottla.wire.messages.quorum.vote import VoteRequest, VoteResponse

_DOUBLINGS_MAX = 10


# --- granting votes


def vote_asked(node: RaftState, token: object, request: VoteRequest) -> None:
    error = refusal(node.cluster_id, request.cluster_id, request.topics)
    if error:
        node.reply(token, VoteResponse(error_code=error, topics=[]))
        return
    ask = request.topics[0].partitions[0]
    too_new = ask.last_offset_epoch > ask.replica_epoch - (not ask.pre_vote)
    absurd = too_new or is_absurd(ask.replica_epoch, node.epoch)
    if absurd or min(ask.last_offset, ask.last_offset_epoch, ask.replica_id) < 0:
        node.reply(token, answers.vote(node, ErrorCode.INVALID_REQUEST))
        return
    last = OffsetAndEpoch(ask.last_offset, ask.last_offset_epoch)
    if not last.offset:
        roll_call.heard(node, ask.replica_id, ask.replica_epoch)
    if ask.replica_epoch < node.epoch:
        node.reply(token, answers.vote(node, ErrorCode.FENCED_LEADER_EPOCH))
        return
    if ask.replica_epoch > node.epoch:
        become_unattached(node, ask.replica_epoch)
    if not _is_me(node, request.voter_id, ask.voter_directory_id):
        node.reply(token, answers.vote(node, ErrorCode.INVALID_VOTER_KEY))
        return
    candidate = ReplicaKey(ask.replica_id, ask.replica_directory_id)
    up_to_date = last.is_up_to_date_with(node.end)
    granted = _would_elect(node, last, up_to_date) if ask.pre_vote else _elects(node, candidate, up_to_date)
    if granted and not ask.pre_vote:
        _note_vote(node, candidate)
    node.reply(token, answers.vote(node, ErrorCode.NONE, granted))


def _is_me(node: RaftState, voter_id: int, directory: bytes) -> bool:
    return voter_id in (-1, node.me.id) and (NO_ID in (directory, node.me.directory) or directory == node.me.directory)


def _would_elect(node: RaftState, last: OffsetAndEpoch, up_to_date: bool) -> bool:
    state = node.state
    if not lost_disk.may_answer(node, last):
        return False
    if isinstance(state, Leader):
        return up_to_date and not state.is_ready
    if isinstance(state, Follower):
        return up_to_date and (state.leader_gone or not state.has_fetched)
    return up_to_date


def _elects(node: RaftState, candidate: ReplicaKey, up_to_date: bool) -> bool:
    if not isinstance(node.state, Unattached | Prospective):
        return False
    if node.voted is not None:
        same_disk = NO_ID in (node.voted.directory, candidate.directory) or node.voted == candidate
        return node.voted.id == candidate.id and same_disk
    return node.leader_id < 0 and up_to_date and lost_disk.may_vote(node, candidate.id)


def _note_vote(node: RaftState, candidate: ReplicaKey) -> None:
    if node.voted is None:
        # A node that granted its vote waits for a new election timeout before it stands itself.
        if isinstance(node.state, Unattached):
            become(node, Unattached(node.election_timeout()), voted=candidate)
        else:
            become_unattached(node, node.epoch, voted=candidate)
        lost_disk.end(node)


# --- asking for votes


def _become_candidate(node: RaftState) -> None:
    state = Candidate(node.election_timeout(), node.own_votes)
    become(node, state, epoch=LeaderEpoch(node.epoch + 1), voted=node.me, remembered=not node.voters.is_only(node.me))
    lost_disk.end(node)


def poll_unattached(node: RaftState, state: Unattached) -> int | None:
    if not lost_disk.may_stand(node):
        return roll_call.wait(node)
    if node.now_ms >= state.deadline_ms or node.voters.is_only(node.me):
        become_prospective(node)
        return None
    return min(state.deadline_ms, following.fetch_from_anyone(node))


def poll_prospective(node: RaftState, state: Prospective) -> int | None:
    if not lost_disk.may_stand(node):
        _give_up(node)
    elif len(state.granted) >= node.voters.majority:
        _become_candidate(node)
    elif _is_lost(node, state) or node.now_ms >= state.deadline_ms:
        _give_up(node)
    else:
        return _ask_for_votes(node, state, pre_vote=True)
    return None


def _give_up(node: RaftState) -> None:
    """End a failed pre-vote: follow the leader again, if one is known, else become unattached."""
    endpoint = node.leader_endpoint()
    if node.leader_id >= 0 and endpoint is not None:
        become_follower(node, node.epoch, node.leader_id, endpoint)
    else:
        become_unattached(node, node.epoch, leader_id=node.leader_id, voted=node.voted)


def poll_candidate(node: RaftState, state: Candidate) -> int | None:
    if state.pause_until_ms is not None:
        if node.now_ms < state.pause_until_ms:
            return state.pause_until_ms
        become_prospective(node)
        return None
    if len(state.granted) >= node.voters.majority:
        node.elections_lost = 0
        leading.become_leader(node, tuple(sorted(state.granted)))
        return None
    if _is_lost(node, state) or node.now_ms >= state.deadline_ms:
        # Several candidates stood at the same time: a random pause makes it likely that next time one stands first.
        node.elections_lost += 1
        longest_ms = RAFT_ELECTION_BACKOFF_MS << min(node.elections_lost, _DOUBLINGS_MAX)
        longest_ms = min(longest_ms, max(node.config.election_backoff_max_ms, 2))
        state.pause_until_ms = node.now_ms + node.rng.randrange(1, longest_ms)
        return state.pause_until_ms
    return _ask_for_votes(node, state, pre_vote=False)


def _is_lost(node: RaftState, state: Prospective | Candidate) -> bool:
    return len(state.rejected) > len(node.voters) - node.voters.majority


def _ask_for_votes(node: RaftState, state: Prospective | Candidate, *, pre_vote: bool) -> int:
    wake_ms = state.deadline_ms
    for voter in node.voters.others(node.me.id):
        if voter.id in state.granted or voter.id in state.rejected or voter.address is None:
            continue
        if node.inflight.is_ready(voter.id, node.now_ms):
            ask_for_vote(node, voter, pre_vote=pre_vote)
        wake_ms = min(wake_ms, node.inflight.wake_ms(voter.id, node.now_ms))
    return wake_ms


def vote_answered(node: RaftState, voter_id: int, request: VoteRequest, response: VoteResponse) -> None:
    if response.error_code or not response.topics:
        node.inflight.pause(voter_id, node.now_ms)
        return
    told = response.topics[0].partitions[0]
    roll_call.answered(node, voter_id, request, told.vote_granted, told.leader_epoch)
    if heard_of(node, named_leader(told, response.node_endpoints), told.error_code):
        return
    ask = request.topics[0].partitions[0]
    wanted = Prospective if ask.pre_vote else Candidate
    state = node.state
    if not isinstance(state, wanted) or ask.replica_epoch != node.epoch or told.error_code:
        return
    (state.granted if told.vote_granted else state.rejected).add(voter_id)
