"""The arguments of JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The commands (`join`, `sync`, …) extend them with the behaviour of a classic group; a consumer group that has members of
the classic protocol (`consumer/classic_members`) takes the same arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.classic.group import MemberProtocol


@dataclass(frozen=True, slots=True)
class JoinArguments:
    """A JoinGroup request."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    needs_known_id: bool = True
    can_skip_assignment: bool = True
    reason: str = ""  # why it joins, in the client's words (KIP-800)


@dataclass(frozen=True, slots=True)
class SyncArguments:
    """A SyncGroup request."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class HeartbeatArguments:
    """A Heartbeat request."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int


class Leaver(NamedTuple):
    """A member to remove. Without a member id: the static member with that instance id. `reason` is the client's word
    (KIP-800).
    """

    member_id: str
    instance_id: str | None
    reason: str = ""
