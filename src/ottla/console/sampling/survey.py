"""One look at a cluster after the other, and what is reckoned from two of them. It is done beside the loop that serves
pages (`aside.py`), and returns values that nobody changes any more.

Rules:
- Groups, offsets, settings and the audit log are read in every third look only.
- Where no node tells its metrics (a real Kafka), what was written is known by offsets and sizes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.client.metadata import NO_LEADER
from ottla.console.sampling.audited import AuditedChanges
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
from ottla.operations.security.audit_entries import AuditEntry

if TYPE_CHECKING:
    from ottla.client.admin.voters import QuorumState
    from ottla.client.security.security import Security

log = logging.getLogger(__name__)
T = TypeVar("T")

_UNCHANGED = (ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What one look has found. `changes` are those since the look before, in the order of reading; `audited` is None
    where there is no audit log that may be read; partitions that move are not behind.
    """

    now: TopSample
    quorum: QuorumState | None
    moving: frozenset[TopicPartition]
    partitions: int
    offline: int
    behind: int
    brokers: tuple[Row, ...]
    groups: tuple[Row, ...]
    changes: tuple[ClusterChange, ...]
    moments: tuple[ClusterMoment, ...]
    missing: tuple[str, ...]
    audited: tuple[AuditEntry, ...] | None


class ClusterSurvey:
    """Looks at one cluster with one client."""

    def __init__(self, admin: Admin, security: Security | None) -> None:
        self._admin = admin
        self._sampler = TopSampler(admin, security)
        self._audited = AuditedChanges(admin)
        self._before: TopSample | None = None
        self._slow: TopSample | None = None
        self._settings: Settings | None = None
        self._groups: tuple[Row, ...] = ()
        self._missing_slow: tuple[str, ...] = ()
        self._changes: list[ClusterChange] = []
        self._moments: list[ClusterMoment] = []

    async def look(self, *, is_slow: bool) -> Surveyed:
        """Look once. Raises if no broker answers."""
        now, before = await self._sampler.take(TopView.BROKERS), self._before
        quorum = await _or_none(self._admin.voters.quorum())
        moving = frozenset(now.adding)
        self._changes, self._moments = [], []
        if before is not None:
            self._changes += changes_between(before, now, moving, _now_ms())
        if is_slow:
            await self._look_slowly(now)
        if before is not None and now.metrics:
            self._moments.append(moment_of(before, now, worst_lags(self._groups)))
        self._before = now
        every = [(topic.name, each) for topic in now.topics for each in topic.partitions]
        return Surveyed(
            now,
            quorum,
            moving,
            len(every),
            sum(each.leader == NO_LEADER for _, each in every),
            sum(bool(now.behind(topic, each)) for topic, each in every),
            tuple(rows(TopView.BROKERS, before or now, now)),
            self._groups,
            tuple(self._changes),
            tuple(self._moments),
            tuple(dict.fromkeys((*now.missing, *self._missing_slow))),
            self._audited.newest,
        )

    async def _look_slowly(self, quick: TopSample) -> None:
        """Read groups, offsets, settings and the audit log, too."""
        before, now = self._slow, await self._sampler.take(TopView.GROUPS)
        if not quick.metrics:
            of_topics = await self._sampler.take(TopView.TOPICS)
            now = TopSample(
                of_topics.at_s, now.brokers, of_topics.topics, of_topics.ends, of_topics.starts, of_topics.sizes,
                now.groups, now.lags, {}, now.missing,
            )  # fmt: skip
        self._slow, self._missing_slow = now, now.missing
        self._groups = tuple(rows(TopView.GROUPS, before or now, now))
        await _or_none(self._audited.look())
        settings = await _or_none(_settings(self._admin, now))
        if before is not None:
            self._changes += changed_groups(before, now, _now_ms())
            if not quick.metrics:
                self._moments.append(moment_of_offsets(before, now, worst_lags(self._groups)))
        if settings is not None:
            if self._settings is not None:
                self._changes += changed_settings(self._settings, settings, _now_ms())
            self._settings = settings


async def _settings(admin: Admin, sample: TopSample) -> Settings:
    """The settings of brokers and of some topics that somebody has changed."""
    alive = [Resource.broker(each.node_id) for each in sample.brokers if not each.is_fenced]
    topics = [Resource.topic(each.name) for each in sample.topics if not each.is_internal]
    wanted = [*alive, *topics[: limits.CONSOLE_COMPARED_TOPICS]]
    found = (await admin.configs.describe_each(wanted)).found
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
