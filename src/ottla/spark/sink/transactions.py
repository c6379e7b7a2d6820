"""The transactions of a sink: their names, and how the driver ends those that tasks left open.

ottla-spark/<sink>/driver                   the state is written under this one; who takes it fences other drivers
ottla-spark/<sink>/task/<index>/<attempt>   one per task and attempt, used again by every batch
ottla-spark/<sink>/task/<index>/<attempt>/<unique>   where another attempt of that number has its transaction open

Rules:
- Names of sinks have no slash, so that none of these ids is, or begins with, an id of another sink.
- Spark counts a task's attempts anew when it retries the whole stage, and does not tell Python which attempt of the
  stage it is. An attempt must not take an id under which another one's rows are open: that would abort them. Everything
  open was aborted before the batch began, so what is open now is such a sibling's, or that of a task which is late.
  Ids that are unique for good would be the plain way, but brokers remember each of them for days: a query that runs
  every second would leave millions behind.
- All parts are tried. What became of each is known, also when a coordinator is away.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar
from uuid import uuid4

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRange
from ottla.client.outcomes import Outcomes, outcomes_of
from ottla.client.producer import handover
from ottla.client.producer.transaction import OpenTransaction
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.spark.sink.protocol import Part

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
    """The transactional id of one attempt of one task, usually."""
    return f"{task_prefix(sink)}{task}/{attempt}"


async def free_id(cluster: Cluster, sink: str, task: int, attempt: int) -> str:
    """A transactional id for one attempt of one task, under which nothing is open."""
    usual = task_id(sink, task, attempt)
    if await handover.find_open(cluster, usual) is None:
        return usual
    return f"{usual}/{uuid4().hex[:16]}"


async def over(cluster: Cluster, parts: Sequence[Part]) -> list[Part]:
    """Those of the parts whose transactions are not open any more."""
    answers = await Admin(cluster).transactions.all_each(states=[_OPEN])
    listed = {(each.transactional_id, each.producer_id) for found in answers.found.values() for each in found}
    # Brokers that are away, and coordinators that are moving, list nothing: who is not there is asked for by name.
    missed = [part for part in parts if (part.transactional_id, part.producer_id) not in listed]
    found = await asyncio.gather(*_bounded(handover.find_open(cluster, part.transactional_id) for part in missed))
    return [
        part
        for part, at in zip(missed, found, strict=True)
        if at is None or (at.producer_id, at.epoch) != (part.producer_id, part.epoch)
    ]


async def is_held(cluster: Cluster, taken: OpenTransaction) -> bool:
    """Whether nobody has taken the transactional id since."""
    try:
        found = await Admin(cluster).transactions.describe(taken.transactional_id)
    except ApiError:
        return False
    return (found.producer_id, found.producer_epoch) == (taken.producer_id, taken.epoch)


async def commit(cluster: Cluster, parts: Sequence[Part]) -> Outcomes[Part, bool]:
    """Commit what tasks wrote, now or (if that was done before) again; False for those that are lost."""
    return await outcomes_of(dict(zip(parts, _bounded(_commit(cluster, part) for part in parts), strict=True)))


async def _commit(cluster: Cluster, part: Part) -> bool:
    if await handover.end(cluster, _open(part), committed=True):
        return True
    # The coordinator does not remember it, or somebody took the id since. What the readers see is the truth.
    place = part.first
    try:
        return await handover.is_committed(cluster, TopicPartition(place.topic, place.partition), place.offset)
    except OffsetOutOfRange as error:
        raise handover.Untold(str(error)) from error


async def abort(cluster: Cluster, parts: Sequence[Part]) -> Outcomes[Part, bool]:
    """Abort what tasks wrote, as far as it is open."""
    ends = _bounded(handover.end(cluster, _open(part), committed=False) for part in parts)
    return await outcomes_of(dict(zip(parts, ends, strict=True)))


async def abort_open(cluster: Cluster, sink: str) -> None:
    """Abort whatever tasks of the sink have left open."""
    prefix = task_prefix(sink)
    listed = await Admin(cluster).transactions.all(states=[_OPEN])
    names = [each.transactional_id for each in listed if each.transactional_id.startswith(prefix)]
    ends = _bounded(_abort(cluster, name) for name in names)
    (await outcomes_of(dict(zip(names, ends, strict=True)))).all()


async def _abort(cluster: Cluster, transactional_id: str) -> None:
    """By the very producer and epoch that have it open: if it is ended meanwhile, nothing happens."""
    found = await handover.find_open(cluster, transactional_id)
    if found is not None:
        await handover.end(cluster, found, committed=False)


def _open(part: Part) -> OpenTransaction:
    return OpenTransaction(
        part.transactional_id, ProducerId(part.producer_id), ProducerEpoch(part.epoch), part.implicit
    )


def _bounded(work: Iterable[Awaitable[T]]) -> list[Awaitable[T]]:
    """Not all at once."""
    room = asyncio.Semaphore(limits.SPARK_ENDS_AT_ONCE_MAX)

    async def run(each: Awaitable[T]) -> T:
        async with room:
            return await each

    return [run(each) for each in work]
