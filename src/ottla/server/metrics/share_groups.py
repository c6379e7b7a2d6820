"""Share groups in the partitions that this node leads: what members hold, and what became of deliveries."""

from __future__ import annotations

from collections import Counter

from ottla.model import limits
from ottla.observe.metrics.catalogue import lag as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.loop.slices import Steps, Tally
from ottla.server.metrics.named import OTHER, NamedTotals, ToldNames

_COUNTERS = (told.ACQUIRED, told.REDELIVERED, told.ACKNOWLEDGED, told.ARCHIVED)
_TRAFFIC = (0,)


class ShareGroupsCollector:
    def __init__(self, coordinators: CoordinatorsOnDemand, names: ToldNames) -> None:
        self._coordinators = coordinators
        self._totals = NamedTotals(names, len(_COUNTERS), _TRAFFIC)
        self._former: dict[object, tuple[int, ...]] = {}  # what the counts of each group were at the last scrape

    def collect(self, exposition: Exposition) -> Steps:
        composed = self._coordinators.composed
        if composed is None:
            return
        shares = composed.shares.partitions
        tally = Tally(limits.METRICS_PER_SLICE)
        seen: dict[object, tuple[int, ...]] = {}
        news: dict[str, list[int]] = {}
        for group_id, counts in tuple(shares.deliveries.by_group.items()):
            now = seen[counts] = counts.acquired, counts.redelivered, counts.acknowledged, counts.archived
            before = self._former.get(counts, (0,) * len(_COUNTERS))
            news[group_id] = [after - then for after, then in zip(now, before, strict=True)]
            if tally.is_full():
                yield
        self._former = seen
        totals = self._totals
        yield from totals.add(news)
        in_flight: Counter[str] = Counter()
        for live in shares.live():
            if live.state is not None:
                in_flight[live.id.group_id if live.id.group_id in totals.named else OTHER] += live.state.acquired
                if tally.is_full(1 + len(live.state.ranges)):
                    yield
        groups = [*totals.named.items()]
        if len(totals.named) < len(news) or any(totals.other):
            groups.append((OTHER, totals.other))
        for group_id, counted in groups:
            exposition.add(told.IN_FLIGHT, in_flight[group_id], group_id)
            for metric, value in zip(_COUNTERS, counted, strict=True):
                exposition.add(metric, value, group_id)
