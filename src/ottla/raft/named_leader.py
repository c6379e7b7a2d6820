"""The leader that a message of another node names, and following it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.raft.roles import Candidate, Prospective, Unattached
from ottla.raft.state import RaftState
from ottla.raft.transitions import become_follower, become_unattached
from ottla.raft.voters import QuorumEndpoint


class NamedLeader(NamedTuple):
    """The leader of an epoch as a message names it: -1 for none, and None if its endpoint is not named."""

    id: int
    epoch: LeaderEpoch
    endpoint: QuorumEndpoint | None


class NamesLeader(Protocol):
    """The part of an answer that names the leader."""

    leader_id: int
    leader_epoch: LeaderEpoch


class NamesEndpoint(Protocol):
    """The part of an answer that names the endpoint of a node."""

    node_id: int
    host: str
    port: int


def named_leader(told: NamesLeader, endpoints: Iterable[NamesEndpoint] = ()) -> NamedLeader:
    """Return the leader that an answer names, with its endpoint if that is among `endpoints`."""
    found = next((each for each in endpoints if each.node_id == told.leader_id), None)
    endpoint = QuorumEndpoint("", found.host, found.port) if found is not None else None
    return NamedLeader(told.leader_id, told.leader_epoch, endpoint)


def attach(node: RaftState, leader: NamedLeader) -> None:
    """Follow the leader that another node named, if that is news."""
    leader_id, epoch, endpoint = leader
    if epoch < node.epoch or leader_id == node.me.id:
        return
    if endpoint is None and leader_id in node.voters:
        endpoint = node.voters[leader_id].address
    newer = epoch > node.epoch
    if leader_id < 0 or endpoint is None:
        if newer:
            become_unattached(node, epoch, leader_id=leader_id)
        return
    waits = isinstance(node.state, Unattached | Prospective | Candidate)
    if newer or (waits and node.leader_id in (-1, leader_id)):
        become_follower(node, epoch, leader_id, endpoint)


def heard_of(node: RaftState, leader: NamedLeader, error: int) -> bool:
    """Adopt the leader that an answer names; True if the answer is of no other use (another epoch or leader)."""
    if leader.epoch < node.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if leader.epoch > node.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        attach(node, leader)
        return True
    if leader.id >= 0 and node.leader_endpoint() is None:  # or only the leader's id is remembered
        attach(node, leader)
    return error == ErrorCode.BROKER_NOT_AVAILABLE
