"""Changes of the voters of the metadata quorum: one that leaves the cluster is replaced by another controller first.

Rules:
- If possible the number of voters stays odd: the successor becomes a voter before the leaving node stops being one, so
  that there are never fewer voters than before.
- A change that would leave the quorum without a majority of responding voters is refused.
- A handover that was interrupted between the two steps has left one voter too many; repeating it does the second step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.operations.cluster.view import quorum_of
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.voters import QuorumReplica, QuorumState, VoterEndpoint

KRAFT_VERSION = "kraft.version"
_PAIR = 2
_FIXED = 0  # the kraft.version with voters in the property files
_SILENT_MS = 10_000  # a replica that has not fetched for so long counts as down
_WHO = "`ottla cluster quorum` shows who does"


class NewVoter(NamedTuple):
    """An observer that is to vote, where it listens, and the number of voters after that."""

    replica: QuorumReplica
    endpoints: tuple[VoterEndpoint, ...]
    voters: int

    @property
    def remark(self) -> str:
        """What is to be said about the number of voters; empty if it is a good one."""
        if self.voters % 2:
            return ""
        return f"{self.voters} voters are no safer than {self.voters - 1}: one more, or one less, is better"


class Handover(NamedTuple):
    """A voter that is to leave, its successor, and the number of voters after that."""

    voter: QuorumReplica
    successor: QuorumReplica | None
    endpoints: tuple[VoterEndpoint, ...]
    voters: int

    @property
    def text(self) -> str:
        if self.successor is not None:
            return f"node {self.voter.node_id} votes in the quorum: node {self.successor.node_id} takes its seat"
        risk = f": {self.risk}" if self.risk else ""
        return f"node {self.voter.node_id} votes in the quorum: {self.voters} voters are left{risk}"

    @property
    def risk(self) -> str:
        """What is to be said about the voters that are left; empty if their number is a good one."""
        if self.voters % 2:
            return ""
        none = "none of them may fail, until another one votes"
        return none if self.voters == _PAIR else f"no safer than {self.voters - 1}: one more, or one less, is better"


def alive(quorum: QuorumState) -> set[int]:
    """The replicas that fetch, and the leader."""
    replicas = (*quorum.voters, *quorum.observers)
    newest_ms = max((each.last_fetch_timestamp for each in replicas), default=0)
    return {each.node_id for each in replicas if each.last_fetch_timestamp >= newest_ms - _SILENT_MS}


def check_majority(quorum: QuorumState, leaving: int) -> None:
    """Raise CommandError if too few of the other voters respond without this one."""
    others = [each.node_id for each in quorum.voters if each.node_id != leaving]
    silent = sorted(set(others) - alive(quorum))
    if not others:
        raise CommandError(
            f"node {leaving} is the only voter: without it there is no cluster",
            "`ottla cluster add-voter` lets another controller vote first",
        )
    if len(others) - len(silent) < len(others) // 2 + 1:
        raise CommandError(
            f"voter {silent[0]} does not answer: without node {leaving}, too, the quorum could decide nothing",
            f"start node {silent[0]}, or remove that one first",
        )


async def is_dynamic(admin: Admin) -> bool:
    """Whether voters may come and go; otherwise they are fixed in property files."""
    levels = {each.name: each.finalized or 0 for each in await admin.nodes.features()}
    return levels.get(KRAFT_VERSION, _FIXED) != _FIXED


async def check_dynamic(admin: Admin, what: str) -> None:
    """Raise CommandError if the voters are fixed in property files."""
    if not await is_dynamic(admin):
        raise CommandError(
            f"{what}: the voters of this cluster are fixed (controller.quorum.voters)",
            f"`ottla cluster features {KRAFT_VERSION}=1` lets them change, once and for all",
        )


async def plan_handover(admin: Admin, node_id: int) -> Handover | None:
    """The handover of the seat of a node that leaves; None if the node is no voter."""
    quorum = await quorum_of(admin)
    voter = next((each for each in quorum.voters if each.node_id == node_id), None)
    if voter is None:
        return None
    left = len(quorum.voters) - 1
    if not left and not quorum.observers:
        raise CommandError(f"node {node_id} is the only node: it cannot be removed", "`ottla cluster add-broker` first")
    await check_dynamic(admin, f"node {node_id} votes, and cannot be removed")
    if left % 2 == 0:
        places = await admin.voters.controllers()
        for each in quorum.observers:  # a node that was stopped a moment ago is still among them
            ends = places.get(each.node_id, ())
            if ends and await admin.voters.is_up(ends[0]):
                return Handover(voter, each, ends, left + 1)
    check_majority(quorum, node_id)
    return Handover(voter, None, (), left)


async def plan_new_voter(admin: Admin, node_id: int, endpoints: tuple[VoterEndpoint, ...] = ()) -> NewVoter:
    """What makes an observing controller a voter. Its endpoints are looked up if they are not given."""
    quorum = await quorum_of(admin)
    if any(each.node_id == node_id for each in quorum.voters):
        raise CommandError(f"node {node_id} votes already")
    found = next((each for each in quorum.observers if each.node_id == node_id), None)
    if found is None:
        raise CommandError(f"node {node_id} does not take part in the quorum", _WHO)
    await check_dynamic(admin, f"node {node_id} cannot vote")
    if not endpoints:
        endpoints = (await admin.voters.controllers()).get(node_id, ())
    if not endpoints:
        raise CommandError(f"node {node_id} is no controller", "process.roles of its server.properties says what it is")
    return NewVoter(found, endpoints, len(quorum.voters) + 1)


async def plan_leave(admin: Admin, node_id: int) -> Handover:
    """What removes a voter without a successor."""
    quorum = await quorum_of(admin)
    voter = next((each for each in quorum.voters if each.node_id == node_id), None)
    if voter is None:
        follows = any(each.node_id == node_id for each in quorum.observers)
        what = "vote" if follows else "take part in the quorum"
        raise CommandError(f"node {node_id} does not {what}", _WHO)
    await check_dynamic(admin, f"node {node_id} votes for ever")
    check_majority(quorum, node_id)
    return Handover(voter, None, (), len(quorum.voters) - 1)


async def let_vote(admin: Admin, newcomer: NewVoter) -> None:
    """Make a controller a voter."""
    await _add(admin, newcomer.replica, newcomer.endpoints)


async def hand_over(
    admin: Admin,
    handover: Handover,
    done: Callable[[str], None] = lambda _: None,
    status: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Carry out a handover; returns when the leaving node is no voter any more. `done` is told what has been done,
    `status` shows what is under way.
    """
    leaver, successor = handover.voter, handover.successor
    if successor is not None:
        with status(f"node {successor.node_id} takes a seat in the quorum"):
            await _add(admin, successor, handover.endpoints)
        done(f"node {successor.node_id} votes")
    with status(f"node {leaver.node_id} gives up its seat in the quorum"):
        try:
            await admin.voters.remove(leaver.node_id, leaver.directory_id)
        except (ClientError, ApiError):
            if leaver.node_id in await _voters(admin):
                raise
    done(f"node {leaver.node_id} no longer votes")


async def _add(admin: Admin, newcomer: QuorumReplica, endpoints: tuple[VoterEndpoint, ...]) -> None:
    try:
        await admin.voters.add(newcomer.node_id, newcomer.directory_id, endpoints)
    except (ClientError, ApiError):
        if newcomer.node_id not in await _voters(admin):
            raise


async def _voters(admin: Admin) -> set[int]:
    """The voters now. After a failed request they tell whether the change was made: the node that was asked may have
    stopped, or lost the lead, before it answered.
    """
    return {each.node_id for each in (await quorum_of(admin)).voters}
