"""Transitions between roles. The election state of a transition is on disk before another node hears of it.

The allowed transitions are listed in `roles`.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.raft import effects, lost_disk, waiting
from ottla.raft.journal import ElectionState, ReplicaKey
from ottla.raft.replica_progress import voter_progress
from ottla.raft.roles import NEXT, ROLE_OF, Follower, Leader, Prospective, Resigned, RoleState, Unattached
from ottla.raft.state import RaftState
from ottla.raft.voters import QuorumEndpoint


def become(
    node: RaftState,
    state: RoleState,
    *,
    epoch: LeaderEpoch | None = None,
    leader_id: int = -1,
    voted: ReplicaKey | None = None,
    endpoint: QuorumEndpoint | None = None,
    remembered: bool = True,
) -> None:
    """Change the role, after the election state was written.

    With `remembered` False it is not written: the next change follows at once, and no other node hears of this one.
    """
    epoch = node.epoch if epoch is None else epoch
    _check(node, state, epoch, leader_id, voted)
    before = ElectionState(node.epoch, node.leader_id, node.voted)
    if remembered:
        _remember(node, state, epoch, leader_id, voted)
    if isinstance(node.state, Leader):
        _step_down(node, node.state, epoch)
    node.epoch, node.leader_id, node.voted = epoch, leader_id, voted
    node.known_leader_endpoint = endpoint
    node.state = state
    node.inflight.forget()
    if (epoch, leader_id) != before[:2] and leader_id != node.me.id:
        node.emit(effects.Follow(leader_id, epoch))


def _check(node: RaftState, state: RoleState, epoch: LeaderEpoch, leader_id: int, voted: ReplicaKey | None) -> None:
    """Assert that epochs only rise, and that each has at most one leader and one vote of this node."""
    assert epoch >= node.epoch, f"from epoch {node.epoch} back to {epoch}"
    if epoch > node.epoch:
        return
    assert ROLE_OF[type(state)] in NEXT[node.role], f"{node.role} → {state}"
    assert leader_id < 0 or node.leader_id in (-1, leader_id), f"epoch {epoch} is led by {node.leader_id}, {leader_id}"
    assert voted is None or node.voted is None or voted.id == node.voted.id, f"epoch {epoch}: {node.voted}, {voted}"


def _remember(node: RaftState, state: RoleState, epoch: LeaderEpoch, leader_id: int, voted: ReplicaKey | None) -> None:
    if isinstance(state, Leader | Resigned):
        leader_id, voted = node.me.id, None  # the leader has voted for itself
    election = ElectionState(epoch, leader_id, voted)
    if election != node.remembered:
        node.journal.write_election(election, list(node.voters), node.history.kraft_version)
        node.remembered = election


def _step_down(node: RaftState, state: Leader, epoch: LeaderEpoch) -> None:
    """Refuse all requests that wait for this leader: the clients must ask another node."""
    error = ErrorCode.FENCED_LEADER_EPOCH if epoch > node.epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
    waiting.refuse_waiting(node, state, error)
    waiting.end_change(node, state, ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum any more.")


def become_unattached(
    node: RaftState, epoch: LeaderEpoch, *, leader_id: int = -1, voted: ReplicaKey | None = None
) -> None:
    become(node, Unattached(node.election_timeout()), epoch=epoch, leader_id=leader_id, voted=voted)


def become_prospective(node: RaftState) -> None:
    become(
        node,
        Prospective(node.election_timeout(), node.own_votes),
        leader_id=node.leader_id,
        voted=node.voted,
        endpoint=node.leader_endpoint(),
    )


def new_follower(node: RaftState) -> Follower:
    return Follower(node.now_ms + node.config.fetch_timeout_ms, node.now_ms + node.config.update_voter_interval_ms)


def become_follower(node: RaftState, epoch: LeaderEpoch, leader_id: int, endpoint: QuorumEndpoint) -> None:
    voted = node.voted if epoch == node.epoch else None
    become(node, new_follower(node), epoch=epoch, leader_id=leader_id, voted=voted, endpoint=endpoint)
    node.elections_lost = 0
    lost_disk.followed(node)


def resign(node: RaftState, state: Leader) -> None:
    """Resign; name the voters with the longest logs first as successors: they can be elected soonest."""
    known = sorted(voter_progress(node, state), key=lambda each: (-each.end_offset, each.key))
    keys = tuple(node.voters[each.key.id].key for each in known)
    become(node, Resigned(node.election_timeout(), {key.id for key in keys}, keys), voted=node.me)
