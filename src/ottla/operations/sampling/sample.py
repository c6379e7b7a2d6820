"""Read what one look of `ottla top` needs: no more than its view shows, and each part by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.errors import ClientError
from ottla.client.metadata import AdvertisedBroker, PartitionInfo, TopicInfo, replicas_behind
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.operations.cluster.view import disks, largest
from ottla.operations.doctor.cluster.lags import read_lags
from ottla.operations.failures import message_of
from ottla.operations.metrics.endpoint import NoMetricsError, metrics_of
from ottla.operations.metrics.samples import MetricSamples
from ottla.operations.threads import BlockingWork, in_thread

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.groups import GroupListing
    from ottla.client.admin.replicas import Reassignment
    from ottla.client.security.security import Security
    from ottla.operations.doctor.cluster.cluster_seen import GroupLag

T = TypeVar("T")
_PART_S = 10.0


class TopView(StrEnum):
    """What is shown; the first letter is its key."""

    BROKERS = "brokers"
    TOPICS = "topics"
    GROUPS = "groups"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class TopSample:
    """The cluster at one moment, `at_s` by a steady clock. What the view does not need is empty; `missing` says what
    could not be read.
    """

    at_s: float
    brokers: Sequence[AdvertisedBroker] = ()
    topics: Sequence[TopicInfo] = ()
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    groups: Sequence[GroupListing] = ()
    lags: Sequence[GroupLag] = ()
    metrics: dict[int, MetricSamples] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    # Of each partition with a reassignment under way, the replicas that are being added. Empty if it is not known.
    adding: Mapping[TopicPartition, Sequence[int]] = field(default_factory=dict)

    def behind(self, topic: str, partition: PartitionInfo) -> frozenset[int]:
        """Return the replicas of a partition that are not in sync, without those that are being added."""
        adding = self.adding.get(TopicPartition(topic, partition.index), ())
        return replicas_behind(partition.replicas, partition.isr, adding)


class TopSampler:
    """Takes samples of one cluster; it remembers where nodes tell their metrics."""

    def __init__(self, admin: Admin, security: Security | None) -> None:
        self._admin = admin
        self._security = security
        self._settings: dict[int, dict[str, str]] = {}

    async def take(self, view: TopView) -> TopSample:
        """Raises if no broker answers."""
        described = await self._admin.nodes.describe(fenced=True)
        missing: list[str] = []
        alive = [each for each in described.brokers if not each.is_fenced]
        topics: Sequence[TopicInfo] = ()
        if view is not TopView.REQUESTS:
            topics = await self._part("topics", self._admin.topics.all(), missing) or ()
        bounds: dict[TopicPartition, PartitionBounds] = {}
        sizes: dict[TopicPartition, int] = {}
        groups: Sequence[GroupListing] = ()
        lags: Sequence[GroupLag] = ()
        metrics: dict[int, MetricSamples] = {}
        moves: Sequence[Reassignment] = ()
        if view in (TopView.BROKERS, TopView.TOPICS):  # who may not see them sees no less for it
            moves = await self._part("reassignments", self._admin.replicas.reassignments(), []) or ()
        if view in (TopView.TOPICS, TopView.GROUPS):
            bounds = await self._part("offsets", self._bounds(topics, alive), missing) or {}
        now_s = asyncio.get_running_loop().time()
        if view is TopView.TOPICS:
            found = await self._part("sizes", disks(self._admin, [each.node_id for each in alive]), missing)
            sizes = largest(found or {})
        if view is TopView.GROUPS:
            groups = await self._part("groups", self._admin.groups.all(), missing) or ()
            lags = await self._part("lag", read_lags(self._admin, groups, bounds), missing) or ()
        if view in (TopView.BROKERS, TopView.REQUESTS):
            metrics = await self.metrics(alive, missing)
        return TopSample(
            now_s,
            described.brokers,
            topics,
            {at: each.end for at, each in bounds.items()},
            {at: each.start for at, each in bounds.items()},
            sizes,
            groups,
            lags,
            metrics,
            tuple(missing),
            {each.partition: each.adding for each in moves},
        )

    async def _part(self, what: str, work: Awaitable[T], missing: list[str]) -> T | None:
        try:
            async with asyncio.timeout(_PART_S):
                return await work
        except TimeoutError:
            missing.append(f"{what}: no answer within {_PART_S:.0f} s")
        except (ClientError, ApiError, OSError) as error:
            missing.append(f"{what}: {message_of(error)}")
        return None

    async def _bounds(
        self, topics: Sequence[TopicInfo], alive: Sequence[AdvertisedBroker]
    ) -> dict[TopicPartition, PartitionBounds]:
        ids = {each.node_id for each in alive}
        led = [
            TopicPartition(topic.name, each.index)
            for topic in topics
            for each in topic.partitions
            if each.leader in ids
        ]
        return (await self._admin.topics.bounds_each(led)).found

    async def metrics(self, alive: Sequence[AdvertisedBroker], missing: list[str]) -> dict[int, MetricSamples]:
        """Return the metrics of the nodes that tell them; add to `missing` why others do not."""
        answers = await asyncio.gather(*(self._metrics_of(each) for each in alive), return_exceptions=True)
        found: dict[int, MetricSamples] = {}
        reasons = []
        for broker, answer in zip(alive, answers, strict=True):
            match answer:
                case MetricSamples():
                    found[broker.node_id] = answer
                case NoMetricsError() | ClientError() | ApiError() | OSError() | TimeoutError():
                    self._settings.pop(broker.node_id, None)  # perhaps it has another listener now
                    reasons.append(f"node {broker.node_id}: {message_of(answer)}")
                case _:
                    raise answer
        if reasons:
            missing.append(f"metrics of {reasons[0]}" + (f" (and {len(reasons) - 1} more)" if reasons[1:] else ""))
        return found

    async def _metrics_of(self, broker: AdvertisedBroker) -> MetricSamples:
        settings = self._settings.get(broker.node_id)
        if settings is None:
            async with asyncio.timeout(_PART_S):
                entries = await self._admin.configs.describe(Resource.broker(broker.node_id))
            settings = self._settings[broker.node_id] = {each.name: each.value for each in entries if each.value}
        return await in_thread(BlockingWork.nodes, _samples_of, broker, settings, self._security)


def _samples_of(broker: AdvertisedBroker, settings: Mapping[str, str], security: Security | None) -> MetricSamples:
    """Asked and read in a thread: of a large cluster there are tens of thousands of lines."""
    return metrics_of(broker, settings, security).samples
