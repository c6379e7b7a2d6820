"""The history of a cluster for one user: a task takes samples while somebody looks, and keeps some minutes of them.

Rules:
- `look` says that somebody looks, and starts the task; it ends by itself when nobody has looked for a while.
- Sampling takes no more than a part of the time: the larger the cluster, the rarer the samples.
- Groups, offsets and settings are read in every third sample only.
- Where no node tells its metrics (a real Kafka), what was written is known by offsets and sizes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ottla.client.errors import ClientError
from ottla.console.access import Access
from ottla.console.sampling.changes import (
    ClusterChange,
    Settings,
    changed_groups,
    changed_settings,
    changes_between,
)
from ottla.console.sampling.moment import ClusterMoment, moment_of, moment_of_offsets, worst_lags
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.model.resources import ConfigSource, Resource
from ottla.operations.failures import message_of
from ottla.operations.sampling.rates import Row, rows
from ottla.operations.sampling.sample import TopSample, TopSampler, TopView

if TYPE_CHECKING:
    from ottla.client.admin.voters import QuorumState

log = logging.getLogger(__name__)
T = TypeVar("T")

_FIRST_S = 8.0
_UNCHANGED = (ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)


class ClusterHistory:
    """`before` and `now` are the last two samples; `quorum` is the quorum as its leader saw it then, `moving` are the
    partitions that were moving, and `missing` says what cannot be read.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._sampler = TopSampler(access.admin, access.client_options.known_security)
        self.moments: deque[ClusterMoment] = deque(maxlen=limits.CONSOLE_SAMPLES)
        self.changes: deque[ClusterChange] = deque(maxlen=limits.CONSOLE_CHANGES)
        self.before: TopSample | None = None
        self.now: TopSample | None = None
        self.quorum: QuorumState | None = None
        self.moving: frozenset[TopicPartition] = frozenset()
        self.groups: list[Row] = []
        self.missing: tuple[str, ...] = ()
        self._slow: TopSample | None = None
        self._settings: Settings | None = None
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._taken = asyncio.Event()
        self._looked_s = 0.0

    @classmethod
    def of(cls, access: Access) -> ClusterHistory:
        """The history that is kept for this user."""
        return access.kept(cls, cls, cls.close)

    async def look(self) -> None:
        """Note that somebody looks, and wait for the first sample. Raises if the cluster cannot be asked."""
        self._looked_s = time.monotonic()
        if not self.is_sampling:
            self._taken.clear()
            self._task = asyncio.get_running_loop().create_task(self._run())
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_S):
                await self._taken.wait()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @property
    def is_sampling(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def changed_ms(self) -> int:
        """When something changed last that may be good or bad for the health of the cluster."""
        return next((each.time_ms for each in self.changes if each.mood != "plain"), 0)

    @property
    def has_metrics(self) -> bool:
        """Whether a node tells its metrics."""
        return self.now is not None and bool(self.now.metrics)

    async def _run(self) -> None:
        self.before = self.now = self._slow = self._settings = None  # what was long ago is no basis for rates
        if self.moments:
            self.moments.append(ClusterMoment(asyncio.get_running_loop().time()))
        count = 0
        while time.monotonic() - self._looked_s < limits.CONSOLE_UNWATCHED_S:
            began_s = time.monotonic()
            try:
                await self._take(is_slow=count % limits.CONSOLE_SLOW_EVERY == 0)
                self._failure = None
            except (ClientError, ApiError, OSError, TimeoutError) as error:
                self._failure = error
            except Exception as error:
                log.error("sampling the cluster failed", exc_info=error)
                self._failure = error
            self._taken.set()
            count += 1
            took_s = time.monotonic() - began_s
            await asyncio.sleep(max(limits.CONSOLE_SAMPLE_S - took_s, limits.CONSOLE_SAMPLING_PART * took_s, 1.0))

    async def _take(self, *, is_slow: bool) -> None:
        now = await self._sampler.take(TopView.BROKERS)
        before, self.before, self.now = self.now, self.now, now
        self.missing = now.missing
        self.quorum = await _or_none(self._access.admin.voters.quorum())
        moves = await _or_none(self._access.admin.replicas.reassignments())
        self.moving = frozenset(each.partition for each in moves or ())
        if before is not None:
            self._note(changes_between(before, now, self.moving, _now_ms()))
        if is_slow:
            await self._take_slow(now)
        lags = worst_lags(self.groups)
        if before is not None and now.metrics:
            self._keep(moment_of(before, now, lags))

    async def _take_slow(self, quick: TopSample) -> None:
        """Read groups, offsets and settings, too."""
        before, now = self._slow, await self._sampler.take(TopView.GROUPS)
        if not quick.metrics:
            of_topics = await self._sampler.take(TopView.TOPICS)
            now = TopSample(
                of_topics.at_s, now.brokers, of_topics.topics, of_topics.ends, of_topics.starts, of_topics.sizes,
                now.groups, now.lags, {}, now.missing,
            )  # fmt: skip
        self._slow = now
        self.missing = (*self.missing, *(each for each in now.missing if each not in self.missing))
        self.groups = rows(TopView.GROUPS, before or now, now)
        settings = await _or_none(_settings(self._access, now))
        if before is not None:
            self._note(changed_groups(before, now, _now_ms()))
            if not quick.metrics:
                self._keep(moment_of_offsets(before, now, worst_lags(self.groups)))
        if settings is not None:
            if self._settings is not None:
                self._note(changed_settings(self._settings, settings, _now_ms()))
            self._settings = settings

    def _note(self, changes: list[ClusterChange]) -> None:
        self.changes.extendleft(changes)

    def _keep(self, moment: ClusterMoment) -> None:
        self.moments.append(moment)
        oldest_s = moment.at_s - limits.CONSOLE_SAMPLES * limits.CONSOLE_SAMPLE_S
        while self.moments[0].at_s < oldest_s:
            self.moments.popleft()


async def _settings(access: Access, sample: TopSample) -> Settings:
    """The settings of brokers and of some topics that somebody has changed."""
    alive = [Resource.broker(each.node_id) for each in sample.brokers if not each.is_fenced]
    topics = [Resource.topic(each.name) for each in sample.topics if not each.is_internal]
    wanted = [*alive, *topics[: limits.CONSOLE_COMPARED_TOPICS]]
    found = (await access.admin.configs.describe_each(wanted)).found
    return {
        str(resource): {
            each.name: "(hidden)" if each.is_sensitive else each.value
            for each in entries
            if each.source not in _UNCHANGED
        }
        for resource, entries in found.items()
    }


async def _or_none(work: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(limits.CONSOLE_SAMPLE_S):
            return await work
    except (ClientError, ApiError, TimeoutError, OSError) as error:
        log.debug("not read: %s", message_of(error))
        return None


def _now_ms() -> int:
    return round(time.time() * 1000)
