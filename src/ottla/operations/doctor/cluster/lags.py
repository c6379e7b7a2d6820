"""The lag of all groups of a cluster: from offsets that are read once for all of them, and a second time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.client.admin.asking import one_by_one
from ottla.client.admin.first_times import first_times
from ottla.client.consumer.offsets import LATEST, PartitionBounds
from ottla.model.ids import TopicPartition
from ottla.operations.doctor.cluster.cluster_seen import GroupLag

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.groups import GroupListing
    from ottla.client.consumer.group_offsets import OffsetAndMetadata

GROUPS_MAX = 1000  # of more, the first by name are looked at
_TIMED_MAX = 200  # the ages of unread records are read from the log: only of the longest lags
WITH_OFFSETS = ("classic", "consumer", "streams")


async def read_lags(
    admin: Admin, groups: Iterable[GroupListing], bounds: Mapping[TopicPartition, PartitionBounds]
) -> list[GroupLag]:
    """The lag of each group in the partitions where it has committed something."""
    names = [each.group_id for each in groups if each.kind.lower() in WITH_OFFSETS][:GROUPS_MAX]
    return await lags_at(admin, (await one_by_one(names, admin.groups.offsets)).found, bounds)


async def lags_at(
    admin: Admin,
    offsets: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]],
    bounds: Mapping[TopicPartition, PartitionBounds],
) -> list[GroupLag]:
    """The lag of each group, whose committed offsets are known, in the partitions with bounds."""
    lags = [
        GroupLag(group, at, place.offset, max(bounds[at].end - place.offset, 0))
        for group, places in offsets.items()
        for at, place in places.items()
        if at in bounds
    ]
    unread: dict[TopicPartition, list[tuple[int, GroupLag]]] = defaultdict(list)
    for each in sorted(lags, key=lambda lag: -lag.records)[:_TIMED_MAX]:
        if each.records:
            unread[each.partition].append((max(each.committed, bounds[each.partition].start), each))
    waited: dict[GroupLag, float] = {}
    while unread:  # one group of each partition at a time
        now = {at: lags_there.pop() for at, lags_there in unread.items()}
        stretches = {
            at: PartitionBounds(begin, bounds[at].end) for at, (begin, _) in now.items() if begin < bounds[at].end
        }
        for at, time_ms in (await first_times(admin.cluster, stretches)).found.items():
            if time_ms is not None:
                waited[now[at][1]] = max(admin.cluster.options.now_ms() - time_ms, 0) / 1000
        unread = defaultdict(list, {at: left for at, left in unread.items() if left})
    return [each._replace(waited_s=waited.get(each)) for each in lags]


async def lags_again(admin: Admin, lags: Sequence[GroupLag]) -> list[GroupLag]:
    """The same with `later`, for those that were behind."""
    behind = [each for each in lags if each.records]
    ends = (await admin.topics.offsets_each(dict.fromkeys((each.partition for each in behind), LATEST))).found
    offsets = (await one_by_one(dict.fromkeys(each.group for each in behind), admin.groups.offsets)).found
    found = []
    for each in lags:
        place, end = offsets.get(each.group, {}).get(each.partition), ends.get(each.partition)
        if each.records and place is not None and end is not None:
            each = each._replace(later=max(end.offset - place.offset, 0))
        found.append(each)
    return found
