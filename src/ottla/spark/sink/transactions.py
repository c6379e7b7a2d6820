"""The transactions of a sink: their names, and how the driver ends those that tasks left open.

ottla-spark/<sink>/driver                   the state is written under this one; who takes it fences other drivers
ottla-spark/<sink>/task/<index>/<attempt>   one per task and attempt, used again by every batch
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

from ottla.client import handover
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRange
from ottla.client.transaction import OpenTransaction
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.spark.sink.protocol import Part, Refused

T = TypeVar("T")

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,80}")
_PREFIX = "ottla-spark"
_OPEN = "Ongoing"


def sink_name(sink_id: str) -> str:
    """The id itself if that can be part of a name; else what can be of it, and a hash."""
    if _PLAIN.fullmatch(sink_id):
        return sink_id
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", sink_id.rstrip("/").rpartition("/")[2])[:40]
    return f"{readable}-{hashlib.sha256(sink_id.encode()).hexdigest()[:16]}"


def driver_id(sink: str) -> str:
    """The transactional id of the sink's driver."""
    return f"{_PREFIX}/{sink}/driver"


def task_prefix(sink: str) -> str:
    """What the transactional ids of all tasks of the sink begin with."""
    return f"{_PREFIX}/{sink}/task/"


def task_id(sink: str, task: int, attempt: int) -> str:
    """The transactional id of one attempt of one task."""
    return f"{task_prefix(sink)}{task}/{attempt}"


async def commit(cluster: Cluster, parts: Sequence[Part]) -> list[Part]:
    """Commit what tasks wrote, now or (if that was done before) again; returns those that are lost."""
    outcomes = await asyncio.gather(*_bounded(_commit(cluster, part) for part in parts))
    return [part for part, committed in zip(parts, outcomes, strict=True) if not committed]


async def _commit(cluster: Cluster, part: Part) -> bool:
    if await handover.end(cluster, _open(part), committed=True):
        return True
    # The coordinator does not remember it, or somebody took the id since. What the readers see is the truth.
    place = part.first
    try:
        return await handover.is_committed(cluster, TopicPartition(place.topic, place.partition), place.offset)
    except (OffsetOutOfRange, handover.Untold) as error:
        raise Refused(
            f"nobody can tell any more whether the transaction of {part.transactional_id!r} was committed: {error}"
        ) from error


async def abort(cluster: Cluster, parts: Sequence[Part]) -> None:
    """Abort what tasks wrote, as far as it is open."""
    await asyncio.gather(*_bounded(handover.end(cluster, _open(part), committed=False) for part in parts))


async def abort_open(cluster: Cluster, sink: str) -> None:
    """Abort whatever tasks of the sink have left open."""
    prefix = task_prefix(sink)
    listed = await Admin(cluster).transactions.all(states=[_OPEN])
    names = [each.transactional_id for each in listed if each.transactional_id.startswith(prefix)]
    await asyncio.gather(*_bounded(_abort(cluster, name) for name in names))


async def _abort(cluster: Cluster, transactional_id: str) -> None:
    """By the very producer and epoch that have it open: if it is ended meanwhile, nothing happens."""
    found = await handover.find_open(cluster, transactional_id)
    if found is not None:
        await handover.end(cluster, found, committed=False)


def _open(part: Part) -> OpenTransaction:
    return OpenTransaction(part.transactional_id, part.producer_id, part.epoch, part.implicit)


def _bounded(work: Iterable[Awaitable[T]]) -> list[Awaitable[T]]:
    """Not all at once."""
    room = asyncio.Semaphore(limits.SPARK_ENDS_AT_ONCE_MAX)

    async def run(each: Awaitable[T]) -> T:
        async with room:
            return await each

    return [run(each) for each in work]
