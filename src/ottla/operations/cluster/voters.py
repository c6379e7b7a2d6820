"""Ask the voters of the metadata quorum themselves: which are in doubt, and which answer while there is no leader.

A voter in doubt started with an empty disk and does not vote before it knows that nothing is missing (docs/quorum.md).
Only the voter itself knows; so each is asked at its own listener. A voter that cannot be reached does not count as in
doubt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.address import Address
    from ottla.client.admin import Admin
    from ottla.client.admin.voters import QuorumState, VoterEndpoint

_PATIENCE_S = 2.0  # how long to wait for a controller that may be gone, or unreachable from here


async def in_doubt(admin: Admin, quorum: QuorumState) -> tuple[int, ...]:
    """The voters that are in doubt. Only fixed voters, which have no directory id, can be; the leader cannot."""
    fixed = [each.node_id for each in quorum.voters if not any(each.directory_id)]
    words = await _ask_all(admin, {each: quorum.endpoints.get(each, ()) for each in fixed if each != quorum.leader_id})
    return tuple(node_id for node_id, word in words.items() if word is not None and word.in_doubt)


def advice(voters: tuple[int, ...]) -> str:
    """What to do about voters in doubt while there is a leader."""
    return (
        f"in doubt: {', '.join(map(str, voters))} (started with an empty disk). Votes again, and counts, when it has "
        "what was committed: within some ten seconds. Stop no other controller before"
    )


async def look_around(admin: Admin) -> QuorumState:
    """The quorum as a leader sees it, after the nodes that were asked first knew none: all voters are asked. Raises
    CommandError with the reason if there is no leader; it says more if the address of a controller was given.
    """
    seen = await asyncio.gather(*(_ask(admin, each) for each in admin.cluster.options.bootstrap))
    places = next((each.endpoints for each in seen if each is not None and each.endpoints), None)
    if places is None:
        raise CommandError(
            "no controller leads the cluster: more than half of those that vote do not answer, or are in doubt",
            "start the nodes that are down; `ottla cluster quorum -b` with the address of a controller says more",
        )
    words = await _ask_all(admin, places)
    leading = next((word for word in words.values() if word is not None and word.voters), None)
    if leading is not None:
        return leading
    silent = [str(node_id) for node_id, word in words.items() if word is None]
    doubtful = [str(node_id) for node_id, word in words.items() if word is not None and word.in_doubt]
    found = [f"no answer from voter {', '.join(silent)}"] if silent else []
    found += [f"voter {', '.join(doubtful)} in doubt (started with an empty disk)"] if doubtful else []
    raise CommandError(
        f"no controller leads the cluster: {'; '.join(found) or 'all voters answer, look again'}",
        "start the nodes that are down"
        + ("; if their disks are lost for good, docs/quorum.md says how to go on without them" if doubtful else ""),
    )


async def _ask_all(admin: Admin, places: Mapping[int, tuple[VoterEndpoint, ...]]) -> dict[int, QuorumState | None]:
    known = {node_id: ends[0].address for node_id, ends in sorted(places.items()) if ends}
    answers = await asyncio.gather(*(_ask(admin, each) for each in known.values()))
    return dict(zip(known, answers, strict=True))


async def _ask(admin: Admin, address: Address) -> QuorumState | None:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await admin.voters.as_seen_by(address)
    except (ClientError, ApiError, TimeoutError):
        return None
