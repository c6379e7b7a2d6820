"""The lag of some groups at once, with as few requests as that takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.admin.asking import one_by_one
from ottla.client.admin.groups import PartitionLag
from ottla.client.metadata import NO_LEADER
from ottla.model.ids import TopicPartition
from ottla.operations.doctor.cluster.lags import WITH_OFFSETS, lags_at
from ottla.operations.failures import message_of

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.groups import GroupListing

_SHARE = "share"


class LagTotal(NamedTuple):
    """The lag of a group in all its partitions: records, and for how long the first unread one has waited. None: not
    known; `problem` says why.
    """

    records: int | None = None
    seconds: float | None = None
    partitions: int = 0
    problem: str = ""


async def lag_totals(admin: Admin, groups: Iterable[GroupListing]) -> dict[str, LagTotal]:
    """The lag of each group: two requests for each, and some for the partitions that they read."""
    groups = list(groups)
    found = await _of_share_groups(admin, [each.group_id for each in groups if each.kind == _SHARE])
    names = [each.group_id for each in groups if each.kind.lower() in WITH_OFFSETS]
    offsets = await one_by_one(names, admin.groups.offsets)
    found |= {name: LagTotal(problem=str(error)) for name, error in offsets.failed.items()}
    partitions = await readable(admin, {at for places in offsets.found.values() for at in places})
    bounds = (await admin.topics.bounds_each(partitions)).found if partitions else {}
    lags = defaultdict(list)
    for each in await lags_at(admin, offsets.found, bounds):
        lags[each.group].append(each)
    for name in offsets.found:
        of_group = lags[name]
        waited = [0.0 if each.records == 0 else each.waited_s for each in of_group]
        known = [each for each in waited if each is not None]
        records = sum(each.records for each in of_group) if of_group else None
        found[name] = LagTotal(records, max(known) if known else None, len(of_group))
    return found


async def _of_share_groups(admin: Admin, names: list[str]) -> dict[str, LagTotal]:
    places = await one_by_one(names, admin.shares.places)
    found = {name: LagTotal(problem=str(error)) for name, error in places.failed.items()}
    for name, each in places.found.items():
        lags = [place.lag for place in each if place.lag is not None]
        found[name] = LagTotal(sum(lags) if lags else None, None, len(each))
    return found


async def partition_lags(
    admin: Admin, group_id: str, partitions: Iterable[TopicPartition] = ()
) -> tuple[dict[TopicPartition, PartitionLag], dict[TopicPartition, str]]:
    """The lag of a group in each partition, and why some of it is not known: the age of unread records takes a right to
    read the topic, their number does not.
    """
    lags = await admin.groups.lag_each(group_id, partitions)
    problems = {at: message_of(error) for at, error in lags.failed.items()}
    if not problems:
        return lags.found, problems
    places = await admin.groups.offsets(group_id)
    found = dict(lags.found)
    for at, (_, end) in (await admin.topics.bounds_each(await readable(admin, problems))).found.items():
        committed = places[at].offset if at in places else None
        records = None if committed is None else max(end - committed, 0)
        found[at] = PartitionLag(at, committed, end, records, 0.0 if records == 0 else None)
    return found, problems


async def readable(admin: Admin, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Those of the partitions that exist and have a leader."""
    wanted = sorted(set(partitions))
    names = sorted({each.topic for each in wanted})
    if not names:
        return []
    _, failed = await admin.cluster.refresh(names)
    known = {name: admin.cluster.metadata.topics.get(name) for name in names if name not in failed}
    led = {
        TopicPartition(name, each.index)
        for name, topic in known.items()
        if topic is not None
        for each in topic.partitions
        if each.leader != NO_LEADER
    }
    return [each for each in wanted if each in led]
