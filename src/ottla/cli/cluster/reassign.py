"""`ottla cluster reassign`: carry out given moves, list those under way, and cancel them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.cli.terminal.output import done, note, print_rows
from ottla.cli.terminal.plain import print_error
from ottla.client.admin.replicas import Reassignment
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.throttle import take_off

if TYPE_CHECKING:
    from ottla.client.admin import Admin


def show(moves: Iterable[Reassignment], *, as_json: bool) -> None:
    rows = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
        }
        for each in moves
    ]
    print_rows(rows, ["topic", "partition", "replicas", "adding", "removing"], as_json=as_json, right=["partition"])


async def cancel(admin: Admin, wanted: list[TopicPartition] | None) -> bool:
    """Cancel moves, so that replicas stay where they were; whether all could be cancelled."""
    if wanted is None:
        wanted = [each.partition for each in await admin.replicas.reassignments()]
    if not wanted:
        note("Nothing moves.")
        return True
    outcomes = await admin.replicas.cancel_each(wanted)
    failed = {at: error for at, error in outcomes.failed.items() if not _is_over(error)}
    for at, error in failed.items():
        print_error(f"{at}: {error}")
    if len(failed) < len(wanted):
        done(f"cancelled {len(wanted) - len(failed)} moves")
    if not await admin.replicas.reassignments():
        await take_off(admin)
    return not failed


def _is_over(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def unthrottle(admin: Admin) -> None:
    """Remove the throttle of `--throttle` from all topics and brokers; throttles that other tools set stay."""
    found = await take_off(admin)
    if found.topics:
        done(f"took the throttle off {', '.join(found.topics)}")
    else:
        note("No command of `ottla cluster` has left a throttle.")
    for broker in found.brokers:
        note(f"broker {broker} is away and keeps it: the same command takes it off when the broker is back.")
    for each in found.others:
        note(f"{each} has a throttle that somebody else set: it stays. `ottla config set … --unset` takes it off.")
