"""GroupLags: the lag of the groups that this node coordinates, in records and in seconds.

Scrapes never wait for it: it is looked at beside them, every `LAG_INTERVAL_MS` as long as somebody asks, and each
scrape tells what the last look found. A look asks the other leaders; a worker puts in order what it finds
(`figures.py`).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from ottla.model import limits
from ottla.observe.metrics.catalogue import lag as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Steps, Tally
from ottla.server.metrics.lag.figures import LagFigures, figures, wanted_of
from ottla.server.metrics.lag.positions import GroupPositions, positions
from ottla.server.metrics.lag.unread import UnreadRecords
from ottla.server.metrics.named import ToldNames
from ottla.server.quorum.metadata_host import MetadataHost

log = logging.getLogger(__name__)


class GroupLags:
    def __init__(
        self,
        runtime: Runtime,
        coordinators: CoordinatorsOnDemand,
        metadata: MetadataHost,
        unread: UnreadRecords,
        names: ToldNames,
    ) -> None:
        self._figures: LagFigures | None = None  # those of the last look
        self._runtime = runtime
        self._coordinators = coordinators
        self._metadata = metadata
        self._unread = unread
        self._names = names
        self._looked_s = self._asked_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._look: asyncio.Future[None] | None = None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._look is not None:
            self._look.cancel()

    # --- looking

    def _look_soon(self) -> None:
        """Look now, and again and again while somebody asks."""
        self._timer = None
        if self._runtime.clock_s() - self._asked_s < limits.LAG_WANTED_MS / 1000:
            self._look = self._runtime.slices.begin(self.look())
            self._look.add_done_callback(self._looked)

    def _looked(self, look: asyncio.Future[None]) -> None:
        self._look = None
        if look.cancelled():
            return
        if (error := look.exception()) is not None:
            log.error("the lag of groups could not be looked at", exc_info=error)
        self._timer = self._runtime.loop.call_later(limits.LAG_INTERVAL_MS / 1000, self._look_soon)

    async def look(self) -> None:
        """Look at all groups."""
        composed = self._coordinators.composed
        groups: list[GroupPositions] = []
        known = left_out = 0
        if composed is not None:  # else it coordinates nothing yet
            async for group in positions(composed, lambda: self._metadata.state, self._runtime.slices):
                if known + len(group.positions) <= limits.LAG_PARTITIONS_MAX:
                    known += len(group.positions)
                    groups.append(group)
                else:
                    left_out += len(group.positions)
        wanted = await self._runtime.in_worker(partial(wanted_of, groups))
        found = await self._unread.of(wanted)
        now_ms = self._runtime.now_ms()
        self._figures = await self._runtime.in_worker(partial(figures, groups, found, now_ms, self._names, left_out))
        self._looked_s = self._runtime.clock_s()

    # --- telling

    def collect(self, exposition: Exposition) -> Steps:
        self._asked_s = self._runtime.clock_s()
        if self._timer is None and self._look is None:
            self._look_soon()
        found = self._figures
        if found is None:
            return
        exposition.add(told.LAG_AGE, self._asked_s - self._looked_s)
        exposition.add(told.UNKNOWN_LAGS, found.unknown)
        tally = Tally(limits.METRICS_PER_SLICE)
        for (group_id, kind), lag in found.groups.items():
            exposition.add(told.GROUP_LAG, lag.records, group_id, kind)
            if lag.seconds is not None:
                exposition.add(told.GROUP_LAG_TIME, lag.seconds, group_id, kind)
            if tally.is_full():
                yield
        for group_id, (topic, index), lag in found.partitions:
            exposition.add(told.PARTITION_LAG, lag.records, group_id, topic, str(index))
            if lag.seconds is not None:
                exposition.add(told.PARTITION_LAG_TIME, lag.seconds, group_id, topic, str(index))
            if tally.is_full():
                yield
