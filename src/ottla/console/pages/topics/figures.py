"""Offsets and sizes of the partitions that a page shows, and of no others.

Rules:
- What brokers do not tell (a partition without a leader, a broker that is away, a user without the right to DESCRIBE
  the cluster) is unknown, which is not zero.
- The number of partitions that are asked for is bounded, and so is the wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from ottla.client.admin import Admin
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.errors import ClientError
from ottla.client.metadata import TopicInfo
from ottla.console.pages.topics.frame import Adding, is_offline
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.operations.formats import size_text

UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """First and end offsets, and the sizes of the largest replicas, by partition."""

    bounds: Mapping[TopicPartition, PartitionBounds] = field(default_factory=dict)
    size_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)

    def records(self, topic: TopicInfo) -> int | None:
        """The offsets between first and last of all partitions; None unless each is known."""
        known = [self.bounds.get(each) for each in _partitions(topic)]
        return sum(each.end - each.start for each in known if each) if known and None not in known else None

    def size(self, topic: TopicInfo) -> int | None:
        known = [self.size_bytes.get(each) for each in _partitions(topic)]
        return sum(each for each in known if each) if known and None not in known else None


async def figures_of(admin: Admin, topics: Sequence[TopicInfo]) -> TopicFigures:
    """Ask for the partitions of these topics, the first ones if there are very many."""
    every = ((topic, each) for topic in topics for each in topic.partitions)
    asked = [
        TopicPartition(topic.name, each.index)
        for topic, each in islice(every, limits.CONSOLE_FIGURES_PARTITIONS_MAX)
        if not is_offline(each)
    ]
    if not asked:
        return TopicFigures()
    bounds, sizes = await asyncio.gather(_bounds(admin, asked), _sizes(admin, asked))
    return TopicFigures(bounds, sizes)


async def adding_in(admin: Admin, topic: TopicInfo | None = None) -> Adding:
    """Ask which replicas are being added: to all partitions, or to those of one topic."""
    with suppress(TimeoutError, ApiError, ClientError):
        async with asyncio.timeout(limits.CONSOLE_FIGURES_S):
            moves = await admin.replicas.reassignments(None if topic is None else _partitions(topic))
            return {each.partition: each.adding for each in moves}
    return {}


def count_text(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def bytes_text(number: int | None) -> str:
    return UNKNOWN if number is None else size_text(number)


async def _bounds(admin: Admin, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionBounds]:
    with suppress(TimeoutError, ApiError, ClientError):
        async with asyncio.timeout(limits.CONSOLE_FIGURES_S):
            return (await admin.topics.bounds_each(partitions)).found
    return {}


async def _sizes(admin: Admin, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
    sizes: dict[TopicPartition, int] = {}
    wanted: dict[str, list[int]] = {}
    for name, index in partitions:
        wanted.setdefault(name, []).append(index)
    with suppress(TimeoutError, ApiError, ClientError):
        async with asyncio.timeout(limits.CONSOLE_FIGURES_S):
            for directories in (await admin.nodes.log_dirs_each(topics=wanted)).found.values():
                for replica in (each for directory in directories for each in directory.replicas):
                    at = TopicPartition(replica.topic, replica.partition)
                    if not replica.is_future:
                        sizes[at] = max(sizes.get(at, 0), replica.size_bytes)
    return sizes


def _partitions(topic: TopicInfo) -> list[TopicPartition]:
    return [TopicPartition(topic.name, each.index) for each in topic.partitions]
