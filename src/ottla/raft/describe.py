"""A leader's view of the replicas, for DescribeQuorum."""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.limits import RAFT_OBSERVER_MS_MAX
from ottla.raft.counting import voter_progress
from ottla.raft.journal import ReplicaKey
from ottla.raft.roles import Leader
from ottla.raft.state import RaftState


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
