"""Truncating a follower's log where the leader says that their histories diverge, without delaying other work.

Usually this takes a moment. If it takes longer (`log.cut.is_long`), a worker thread first rebuilds the state of the
producers at that offset. The partition is not fetched meanwhile, so its log does not change unless it becomes the
leader; then there is nothing to truncate any more.
"""

from __future__ import annotations

from ottla.log.cut import is_long, producers_at
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.replica.partition import Partition
from ottla.server.loop.runtime import Runtime
from ottla.server.storage.storage import Storage


def is_long_cut(partition: Partition, epoch: LeaderEpoch, end_offset: int) -> bool:
    return is_long(partition.log, partition.cut_point(epoch, end_offset))


def cut_now(partition: Partition, epoch: LeaderEpoch, end_offset: int, runtime: Runtime, storage: Storage) -> None:
    partition.truncate_for(epoch, end_offset, now_ms=runtime.now_ms())
    storage.cut(partition)


async def cut_long(
    partition: Partition, epoch: LeaderEpoch, end_offset: int, runtime: Runtime, storage: Storage
) -> None:
    """Truncate with the help of a worker; raise ApiError if the leader changed, or the log was truncated otherwise,
    meanwhile.
    """
    leader_epoch, cuts, log = partition.leader_epoch, partition.cuts, partition.log
    offset = partition.cut_point(epoch, end_offset)
    producers = await runtime.in_worker(producers_at, log, offset, runtime.now_ms())
    is_same = partition.log is log and partition.cuts == cuts and storage.partitions.holds(partition)
    if not is_same or partition.is_leader or partition.leader_epoch != leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, "the leader changed meanwhile")
    partition.truncate_for(epoch, end_offset, now_ms=runtime.now_ms(), producers=producers)
    storage.cut(partition)
