"""Changes of the voters of the metadata quorum, with what the terminal says of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.cli.terminal.output import done, err, note
from ottla.operations.cluster.view import quorum_of
from ottla.operations.cluster.voter_changes import Handover, hand_over, let_vote, plan_leave, plan_new_voter
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.voters import VoterEndpoint

_LOOK_S = 0.25
_JOIN_S = 60.0


async def tell_handover(admin: Admin, handover: Handover) -> None:
    """Carry out a handover; returns when the leaving node is no voter any more."""
    await hand_over(admin, handover, done, err().status)


async def add_voter(admin: Admin, node_id: int, endpoints: tuple[VoterEndpoint, ...] = ()) -> None:
    """Make an observing controller a voter. Its endpoints are looked up if they are not given."""
    newcomer = await plan_new_voter(admin, node_id, endpoints)
    await let_vote(admin, newcomer)
    done(f"node {node_id} votes")
    if newcomer.remark:
        note(newcomer.remark)


async def remove_voter(admin: Admin, node_id: int) -> None:
    """Remove a voter."""
    handover = await plan_leave(admin, node_id)
    await tell_handover(admin, handover)
    if handover.risk:
        note(f"{handover.voters} voters are left: {handover.risk}")


async def until_it_follows(admin: Admin, node_id: int, how_to_start: str) -> None:
    """Wait until a newly defined node observes the quorum."""
    try:
        with err().status(f"waiting for node {node_id} to start"):
            async with asyncio.timeout(_JOIN_S):
                while True:
                    if any(each.node_id == node_id for each in (await quorum_of(admin)).observers):
                        return
                    await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise CommandError(
            f"node {node_id} did not start", f"`{how_to_start}`, then `ottla cluster add-voter {node_id}`"
        ) from None
