"""Planning: which part of which partition a Spark task reads, and how many of the new offsets one micro-batch takes.

Pure functions over offsets.

Rules:
- Empty ranges make no task. Splitting keeps the order within a partition, and every offset is in exactly one range.
- The arithmetic is that of Spark's connector, so that a job has the same number of tasks and the same batches with
  both.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, TopicPartition
from ottla.spark.read.offsets import Offsets


class TaskRange(NamedTuple):
    """[start, end) of one partition, for one task."""

    partition: TopicPartition
    start: int
    end: int
    # Whether `start` stands for "the earliest offset": then nothing is lost if the log has a later start by now.
    from_earliest: bool = False
    topic_id: bytes = NO_ID
    leader_epoch: int = NO_LEADER_EPOCH  # when the range was planned: no record in it has a later one

    @property
    def size(self) -> int:
        return self.end - self.start


def split(
    ranges: Iterable[TaskRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
    max_bytes: int | None = None,
    bytes_per_offset: Mapping[TopicPartition, float] | None = None,
) -> list[TaskRange]:
    """Split ranges so that there is one per task."""
    found = [each for each in ranges if each.size > 0]
    if max_records is not None:
        found = [part for each in found for part in divide(each, math.ceil(each.size / max_records))]
    if max_bytes is not None and bytes_per_offset:
        sizes = [each.size * bytes_per_offset.get(each.partition, 0.0) for each in found]
        counts = [max(1, min(math.ceil(size / max_bytes), each.size)) for each, size in zip(found, sizes, strict=True)]
        found = [part for each, count in zip(found, counts, strict=True) for part in divide(each, count)]
    if min_partitions is not None and min_partitions > len(found):
        found = _split_to(found, min_partitions)
    return found


def _split_to(ranges: Sequence[TaskRange], min_partitions: int) -> list[TaskRange]:
    """Split large ranges in proportion to their size; small ones stay whole and do not count in the proportion."""
    total = sum(each.size for each in ranges)
    whole = [each for each in ranges if _parts(each.size, total, min_partitions) == 1]
    left = total - sum(each.size for each in whole)
    wanted = max(min_partitions - len(whole), 1)
    kept = {each.partition for each in whole}
    return [
        part
        for each in ranges
        for part in divide(each, 1 if each.partition in kept else _parts(each.size, left, wanted))
    ]


def _parts(size: int, total: int, wanted: int) -> int:
    return max(math.floor(size / total * wanted + 0.5), 1)


def divide(whole: TaskRange, count: int) -> list[TaskRange]:
    """Split a range into `count` ranges of about the same size, fewer if there are not so many offsets."""
    parts: list[TaskRange] = []
    start, left = whole.start, whole.size
    for number in range(count):
        size = left // (count - number)
        left -= size
        if size > 0:
            parts.append(whole._replace(start=start, end=start + size, from_earliest=whole.from_earliest and not parts))
            start += size
    return parts


def limited(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], limit: int) -> Offsets:
    """The end offsets of a micro-batch of at most `limit` offsets. The limit is shared among partitions in proportion
    to their new offsets, and every partition with new offsets gets at least one. Partitions that are not in `start` are
    not limited.
    """
    sizes = {each: end - start[each] for each, end in latest.items() if each in start and end > start[each]}
    total = sum(sizes.values())
    if total < 1:
        return dict(latest)
    ends: Offsets = {}
    for partition, end in latest.items():
        size = sizes.get(partition)
        if size is None:
            ends[partition] = end
            continue
        share = limit * (size / total)
        ends[partition] = min(end, start[partition] + (math.ceil(share) if share < 1 else math.floor(share)))
    return ends


def count_new(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> int:
    """The number of offsets that no micro-batch has read yet."""
    return sum(end - start.get(partition, 0) for partition, end in latest.items())
