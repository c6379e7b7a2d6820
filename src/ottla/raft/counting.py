"""A leader's knowledge of the other replicas: how far each of them is, and which of them count."""

from __future__ import annotations

from ottla.model.ids import NO_ID
from ottla.model.limits import RAFT_REPLICAS_MAX
from ottla.raft.journal import ReplicaKey
from ottla.raft.roles import Leader, ReplicaProgress
from ottla.raft.state import RaftState


def progress(node: RaftState, state: Leader, key: ReplicaKey) -> ReplicaProgress:
    found = state.replicas.get(key)
    if found is None:
        if len(state.replicas) >= RAFT_REPLICAS_MAX:
            _forget_one(node, state)
        found = state.replicas[key] = ReplicaProgress(key)
    return found


def counts(node: RaftState, state: Leader, key: ReplicaKey) -> bool:
    """Whether this disk is the one that a static voter has now.

    A voter that fetches with a new disk has lost the old one, and fetches of the old disk that are still in flight must
    not count.
    """
    voter = node.voters.get(key.id)
    if voter is None or voter.directory != NO_ID or key.directory == NO_ID:
        return True
    if key not in state.replicas and key not in state.superseded:
        state.superseded |= {each for each in state.replicas if each.id == key.id and each.directory != NO_ID}
    return key not in state.superseded


def _forget_one(node: RaftState, state: Leader) -> None:
    """Forget the observer that was not heard of for longest, because any node can claim to be an observer."""
    observers = [each for each in state.replicas.values() if not node.voters.has(each.key)]
    if observers:
        del state.replicas[min(observers, key=lambda each: each.fetched_ms).key]


def voter_progress(node: RaftState, state: Leader) -> list[ReplicaProgress]:
    """Return the progress of every other voter. Static voters are counted by their id, whatever directory they name."""
    voters = node.voters
    known: dict[int, ReplicaProgress] = {}
    for key, each in state.replicas.items():
        if key in state.superseded or not voters.has(key):
            continue
        if key.id not in known or known[key.id].fetched_ms < each.fetched_ms:
            known[key.id] = each
    return [known.get(voter.id) or progress(node, state, voter.key) for voter in voters.others(node.me.id)]
