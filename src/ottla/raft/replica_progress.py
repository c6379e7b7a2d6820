"""A leader's knowledge of the other replicas: how far each of them is, which of them count, and the view of all that
DescribeQuorum shows.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.ids import NO_ID
from ottla.model.limits import RAFT_OBSERVER_MS_MAX, RAFT_REPLICAS_MAX
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


class ReplicaView(NamedTuple):
    """One replica; the times are by the node's clock, -1 for never."""

    key: ReplicaKey
    end_offset: int
    fetched_ms: int
    caught_up_ms: int


def describe(node: RaftState, now_ms: int) -> tuple[list[ReplicaView], list[ReplicaView]] | None:
    """Return (voters, observers) as the leader sees them; None if this node does not lead."""
    state = node.state
    if not isinstance(state, Leader):
        return None
    me = ReplicaView(node.me, node.journal.end_offset, now_ms, now_ms)
    voters = {node.me.id: me} if node.is_voter else {}
    for each in voter_progress(node, state):
        voters[each.key.id] = ReplicaView(each.key, each.end_offset, each.fetched_ms, each.caught_up_ms)
    observers = [] if node.is_voter else [me]
    observers += [
        ReplicaView(key, each.end_offset, each.fetched_ms, each.caught_up_ms)
        for key, each in sorted(state.replicas.items())
        if not node.voters.has(key) and now_ms - each.fetched_ms <= RAFT_OBSERVER_MS_MAX
    ]
    # A static voter is named without its directory, even if its fetches name one.
    named = [voters[voter_id]._replace(key=node.voters[voter_id].key) for voter_id in node.voters]
    return named, observers
