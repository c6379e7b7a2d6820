"""The figures of lag: from where groups are and what is unread there to what is told. Pure; workers compute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.ids import TopicPartition
from ottla.model.settings.own import (
    OTTLA_METRICS_GROUPS_EXCLUDE,
    OTTLA_METRICS_GROUPS_INCLUDE,
    OTTLA_METRICS_GROUPS_MAX,
)
from ottla.records.batch import NO_TIMESTAMP
from ottla.server.metrics.lag.positions import GroupPosition, GroupPositions
from ottla.server.metrics.lag.unread import Unread
from ottla.server.metrics.named import OTHER, ToldNames


class LagFigure(NamedTuple):
    records: int = 0
    seconds: float | None = None  # None: not known

    def plus(self, other: LagFigure) -> LagFigure:
        """Return the lag of both together: the sum of the records, and the time of the older record."""
        known = [each for each in (self.seconds, other.seconds) if each is not None]
        return LagFigure(self.records + other.records, max(known, default=None))


class GroupPartitionLag(NamedTuple):
    group_id: str
    where: TopicPartition
    lag: LagFigure


class LagFigures(NamedTuple):
    groups: Mapping[tuple[str, str], LagFigure]  # by group and kind
    partitions: Sequence[GroupPartitionLag]
    unknown: int  # the number of partitions whose lag is not known


def group_names(settings: Config) -> ToldNames:
    return ToldNames(
        settings[OTTLA_METRICS_GROUPS_MAX],
        settings[OTTLA_METRICS_GROUPS_INCLUDE],
        settings[OTTLA_METRICS_GROUPS_EXCLUDE],
    )


def wanted_of(groups: Sequence[GroupPositions]) -> dict[TopicPartition, list[int]]:
    """Return the partitions to look at, and the offsets from which groups have not read them, the oldest first."""
    wanted: dict[TopicPartition, set[int]] = {}
    for group in groups:
        for where, position in group.positions.items():
            wanted.setdefault(where, set()).add(position.offset)
    return {where: sorted(offsets) for where, offsets in wanted.items()}


def figures(
    groups: Sequence[GroupPositions],
    found: Mapping[TopicPartition, Unread],
    now_ms: int,
    names: ToldNames,
    left_out: int,
) -> LagFigures:
    unknown = left_out
    lags: dict[tuple[str, str], LagFigure] = {}
    partitions: list[GroupPartitionLag] = []
    for group in groups:
        whole = LagFigure(0, 0.0 if not group.positions else None)
        for where, position in group.positions.items():
            if where in found:
                lag = _lag(position, found[where], now_ms)
                whole = whole.plus(lag)
                partitions.append(GroupPartitionLag(group.group_id, where, lag))
            else:
                unknown += 1
        lags[group.group_id, group.kind] = whole
    named = nlargest(
        names.most, (key for key in lags if names.include(key[0])), key=lambda key: (lags[key].records, key)
    )
    told = {key: lags.pop(key) for key in named}
    for (_, kind), lag in lags.items():
        told[OTHER, kind] = told.get((OTHER, kind), LagFigure()).plus(lag)
    ids = {group_id for group_id, _ in named}
    largest = nlargest(
        limits.METRICS_GROUP_PARTITIONS,
        (each for each in partitions if each.group_id in ids),
        key=lambda each: each.lag.records,
    )
    return LagFigures(told, largest, unknown)


def _lag(position: GroupPosition, unread: Unread, now_ms: int) -> LagFigure:
    records = max(unread.end - position.offset - position.finished, 0)
    if not records:
        return LagFigure(0, 0.0)
    time_ms = unread.times_ms.get(position.offset, NO_TIMESTAMP)
    if time_ms == NO_TIMESTAMP:
        return LagFigure(records)
    return LagFigure(records, 0.0 if time_ms is None else max(now_ms - time_ms, 0) / 1000)
