"""Cutting a follower's log where its leader says that their histories part, without holding up anybody else.

As a rule that is a moment's work. Where it is not (`log.cut.is_long`), what the producers were at that offset is found
in a worker thread first. The partition is not fetched meanwhile, so its log stays as it is, unless it begins to lead;
then there is nothing to cut any more.
"""

from __future__ import annotations

from ottla.log.cut import is_long, producers_at
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.partition import Partition
from ottla.server.loop.runtime import Runtime
from ottla.server.storage.storage import Storage


def is_long_cut(partition: Partition, epoch: int, end_offset: int) -> bool:
    return is_long(partition.log, partition.cut_point(epoch, end_offset))


def cut_now(partition: Partition, epoch: int, end_offset: int, runtime: Runtime, storage: Storage) -> None:
    partition.truncate_for(epoch, end_offset, now_ms=runtime.now_ms())
    storage.cut(partition)


async def cut_long(partition: Partition, epoch: int, end_offset: int, runtime: Runtime, storage: Storage) -> None:
    """Raises ApiError if the partition is led by another node, or was cut by somebody else, before it is done."""
    leader_epoch, cuts, log = partition.leader_epoch, partition.cuts, partition.log
    offset = partition.cut_point(epoch, end_offset)
    producers = await runtime.in_worker(producers_at, log, offset, runtime.now_ms())
    is_same = partition.log is log and partition.cuts == cuts and storage.partitions.holds(partition)
    if not is_same or partition.is_leader or partition.leader_epoch != leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, "the leader changed meanwhile")
    partition.truncate_for(epoch, end_offset, now_ms=runtime.now_ms(), producers=producers)
    storage.cut(partition)
