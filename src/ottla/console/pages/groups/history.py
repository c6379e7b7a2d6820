"""Lag over time: samples of the groups that somebody looks at, kept in memory for one user's pages.

Rules:
- A group is sampled from the first look at it until nobody has looked for some time; what was sampled is kept, and a
  pause is a gap in its lines.
- Groups, points and lines are bounded: the group that was looked at longest ago makes room for a new one.
- A sample that fails is a gap, too; its reason is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.console.access import Access
from ottla.console.pages.groups.words import SHARE
from ottla.console.parts.words import visible
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.operations.failures import NO_ANSWER, message_of
from ottla.operations.group_lags import partition_lags

log = logging.getLogger(__name__)

OTHERS = "other topics"


class LagPoint(NamedTuple):
    """One moment. Rates are records per second since the point before; None: not known."""

    at_s: float
    by_topic: Mapping[str, int]
    records: int | None = None
    seconds: float | None = None
    written_per_s: float | None = None
    read_per_s: float | None = None


class PlaceInLog(NamedTuple):
    """Where a group and the end of a partition are; `lag` is None if it is not known."""

    read: int | None
    end: int | None
    lag: int | None
    seconds: float | None = None


class LagSeries:
    """The lag of one group since somebody began to look at it."""

    def __init__(self, group_id: str, kind: str) -> None:
        self.group_id = group_id
        self.kind = kind
        self.points: deque[LagPoint] = deque(maxlen=limits.CONSOLE_LAG_POINTS)
        self.looked_s = 0.0
        self.problem = ""
        self.task: asyncio.Task[None] | None = None
        self._before: tuple[float, Mapping[TopicPartition, PlaceInLog]] | None = None

    def pause(self, now_s: float) -> None:
        """Begin a gap."""
        self.points.append(LagPoint(now_s, {}))
        self._before = None

    def note(self, now_s: float, positions: Mapping[TopicPartition, PlaceInLog]) -> None:
        """Add a point."""
        by_topic: dict[str, int] = {}
        for at, each in positions.items():
            if each.lag is not None:
                by_topic[at.topic] = by_topic.get(at.topic, 0) + each.lag
        waited = [each.seconds for each in positions.values() if each.seconds is not None]
        written, read = self._rates(now_s, positions)
        total = sum(by_topic.values()) if by_topic else None
        self.points.append(LagPoint(now_s, _largest(by_topic), total, max(waited, default=None), written, read))
        self._before = now_s, positions

    def _rates(self, now_s: float, positions: Mapping[TopicPartition, PlaceInLog]) -> tuple[float | None, float | None]:
        if self._before is None or now_s <= self._before[0]:
            return None, None
        elapsed_s = now_s - self._before[0]
        both = [(self._before[1][at], each) for at, each in positions.items() if at in self._before[1]]
        written = [max(each.end - old.end, 0) for old, each in both if each.end is not None and old.end is not None]
        read = [max(each.read - old.read, 0) for old, each in both if each.read is not None and old.read is not None]
        return sum(written) / elapsed_s if written else None, sum(read) / elapsed_s if read else None


class LagHistories:
    """The series of one user."""

    def __init__(self, access: Access) -> None:
        self._admin = access.admin
        self._series: dict[str, LagSeries] = {}

    @classmethod
    def of(cls, access: Access) -> LagHistories:
        return access.kept(cls, cls, cls.close)

    def look(self, group_id: str, kind: str) -> LagSeries:
        """Return the series of a group, which is sampled from now on."""
        now_s = asyncio.get_running_loop().time()
        series = self._series.pop(group_id, None) or LagSeries(group_id, kind)
        self._series[group_id] = series  # the dict is in the order of looks
        while len(self._series) > limits.CONSOLE_LAG_GROUPS_MAX:
            oldest = next(iter(self._series))
            _end(self._series.pop(oldest))
        series.kind, series.looked_s = kind, now_s
        if series.task is None or series.task.done():
            if series.points:
                series.pause(now_s)
            series.task = asyncio.create_task(_sample(self._admin, series))
        return series

    @property
    def running(self) -> int:
        """How many groups are sampled now."""
        return sum(each.task is not None and not each.task.done() for each in self._series.values())

    def close(self) -> None:
        for each in self._series.values():
            _end(each)


def _end(series: LagSeries) -> None:
    if series.task is not None:
        series.task.cancel()


async def _sample(admin: Admin, series: LagSeries) -> None:
    loop = asyncio.get_running_loop()
    while loop.time() - series.looked_s < limits.CONSOLE_LAG_IDLE_S:
        try:
            async with asyncio.timeout(limits.CONSOLE_PAGE_S):
                positions = await _positions(admin, series.group_id, series.kind)
        except (ApiError, *NO_ANSWER) as error:
            series.problem = message_of(error)
            series.pause(loop.time())
        except Exception as error:
            log.error("sampling the lag of %s failed", visible(series.group_id), exc_info=error)
            series.problem = "an error in the console; its log says more"
            series.pause(loop.time())
        else:
            series.problem = ""
            series.note(loop.time(), positions)
        await asyncio.sleep(limits.CONSOLE_LAG_EVERY_S)


async def _positions(admin: Admin, group_id: str, kind: str) -> dict[TopicPartition, PlaceInLog]:
    if kind == SHARE:
        places = await admin.shares.places(group_id)
        bounds = {}
        with contextlib.suppress(ApiError, ClientError):
            bounds = (await admin.topics.bounds_each([each.partition for each in places])).found
        return {
            each.partition: PlaceInLog(
                each.start, bounds[each.partition].end if each.partition in bounds else None, each.lag
            )
            for each in places
        }
    lags, _ = await partition_lags(admin, group_id)
    return {at: PlaceInLog(each.committed, each.end, each.records, each.seconds) for at, each in lags.items()}


def _largest(by_topic: Mapping[str, int]) -> dict[str, int]:
    """The topics with the longest lag by themselves, the others together."""
    if len(by_topic) <= limits.CONSOLE_LAG_TOPICS_MAX:
        return dict(by_topic)
    order = sorted(by_topic, key=lambda topic: -by_topic[topic])
    kept = {topic: by_topic[topic] for topic in order[: limits.CONSOLE_LAG_TOPICS_MAX]}
    return {**kept, OTHERS: sum(by_topic[topic] for topic in order[limits.CONSOLE_LAG_TOPICS_MAX :])}
