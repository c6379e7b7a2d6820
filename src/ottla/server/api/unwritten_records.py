"""Records that wait for a slow disk: their connection is held until they are written (see `late_writes`)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.api.context import Context
from ottla.server.loop.later import Later


def held_until_written(context: Context, appended: Sequence[tuple[Partition, int]]) -> None:
    """Hold the connection until its records, which end at these offsets, are written or truncated."""
    waiting = [(partition, partition.cuts, end) for partition, end in appended]

    def settle(changed: object) -> bool:
        waiting[:] = [each for each in waiting if _waits(context, *each)]
        if waiting and changed is not None:
            return False
        context.let_go()
        return True

    context.hold()
    context.storage.waiters.watch(Later(), [partition for partition, _ in appended], settle, limits.WAIT_MS_MAX)


def _waits(context: Context, partition: Partition, cuts: int, end: int) -> bool:
    is_here = partition.cuts == cuts and context.storage.partitions.holds(partition)
    return is_here and partition.log.written_offset < end
