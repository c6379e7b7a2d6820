"""The transactions of a sink: their transactional ids, and how the driver ends those that tasks left open.

ottla-spark/<sink>/driver                   the driver's, to write the state; taking it fences other drivers
ottla-spark/<sink>/task/<index>/<attempt>   one per task and attempt, reused by every batch
ottla-spark/<sink>/task/<index>/<attempt>/<unique>   if another attempt of that number has its transaction open

Rules:
- Names of sinks have no slash, so that no id of one sink is equal to, or a prefix of, an id of another sink.
- Spark numbers a task's attempts from 0 again when it retries the whole stage, and does not tell Python the number of
  the stage's attempt. An attempt must not take a transactional id under which another attempt has an open transaction:
  that would abort it. All open transactions were aborted before the batch began, so one that is open now belongs to
  such an attempt, or to a task of an earlier batch that is late. Unique ids would be simpler, but brokers keep each id
  for days: a query that runs every second would leave millions behind.
- Ending transactions tries all parts and returns an outcome for each, also if a coordinator is away.
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
    """The id itself if it can be part of a transactional id; otherwise a readable part of it and a hash."""
    if _PLAIN.fullmatch(sink_id):
        return sink_id
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", sink_id.rstrip("/").rpartition("/")[2])[:40]
    return f"{readable}-{hashlib.sha256(sink_id.encode()).hexdigest()[:16]}"


def driver_id(sink: str) -> str:
    """The transactional id of the sink's driver."""
    return f"{_PREFIX}/{sink}/driver"


def task_prefix(sink: str) -> str:
    """The prefix of the transactional ids of all tasks of the sink."""
    return f"{_PREFIX}/{sink}/task/"


def task_id(sink: str, task: int, attempt: int) -> str:
    """The usual transactional id of one attempt of one task."""
    return f"{task_prefix(sink)}{task}/{attempt}"


async def free_id(cluster: Cluster, sink: str, task: int, attempt: int) -> str:
    """A transactional id for one attempt of one task, without an open transaction."""
    usual = task_id(sink, task, attempt)
    if await handover.find_open(cluster, usual) is None:
        return usual
    return f"{usual}/{uuid4().hex[:16]}"


async def over(cluster: Cluster, parts: Sequence[Part]) -> list[Part]:
    """The parts whose transactions are not open any more."""
    answers = await Admin(cluster).transactions.all_each(states=[_OPEN])
    listed = {(each.transactional_id, each.producer_id) for found in answers.found.values() for each in found}
    # Brokers that are away, and coordinators that are moving, list nothing: describe the missing transactions by their
    # ids.
    missed = [part for part in parts if (part.transactional_id, part.producer_id) not in listed]
    found = await asyncio.gather(*_bounded(handover.find_open(cluster, part.transactional_id) for part in missed))
    return [
        part
        for part, at in zip(missed, found, strict=True)
        if at is None or (at.producer_id, at.epoch) != (part.producer_id, part.epoch)
    ]


async def is_held(cluster: Cluster, taken: OpenTransaction) -> bool:
    """Whether no other producer has taken the transactional id since."""
    try:
        found = await Admin(cluster).transactions.describe(taken.transactional_id)
    except ApiError:
        return False
    return (found.producer_id, found.producer_epoch) == (taken.producer_id, taken.epoch)


async def commit(cluster: Cluster, parts: Sequence[Part]) -> Outcomes[Part, bool]:
    """Commit the transactions of tasks, also if they were committed before; False for lost ones."""
    return await outcomes_of(dict(zip(parts, _bounded(_commit(cluster, part) for part in parts), strict=True)))


async def _commit(cluster: Cluster, part: Part) -> bool:
    if await handover.end(cluster, _open(part), committed=True):
        return True
    # The coordinator does not know the transaction any more, or the id was taken since: see whether its first record is
    # visible.
    place = part.first
    try:
        return await handover.is_committed(cluster, TopicPartition(place.topic, place.partition), place.offset)
    except OffsetOutOfRange as error:
        raise handover.OutcomeUnknown(str(error)) from error


async def abort(cluster: Cluster, parts: Sequence[Part]) -> Outcomes[Part, bool]:
    """Abort the transactions of tasks that are still open."""
    ends = _bounded(handover.end(cluster, _open(part), committed=False) for part in parts)
    return await outcomes_of(dict(zip(parts, ends, strict=True)))


async def abort_open(cluster: Cluster, sink: str) -> None:
    """Abort all transactions that tasks of the sink have left open."""
    prefix = task_prefix(sink)
    listed = await Admin(cluster).transactions.all(states=[_OPEN])
    names = [each.transactional_id for each in listed if each.transactional_id.startswith(prefix)]
    ends = _bounded(_abort(cluster, name) for name in names)
    (await outcomes_of(dict(zip(names, ends, strict=True)))).all()


async def _abort(cluster: Cluster, transactional_id: str) -> None:
    """Abort with the producer id and epoch of the open transaction: if it is ended meanwhile, nothing happens."""
    found = await handover.find_open(cluster, transactional_id)
    if found is not None:
        await handover.end(cluster, found, committed=False)


def _open(part: Part) -> OpenTransaction:
    return OpenTransaction(
        part.transactional_id, ProducerId(part.producer_id), ProducerEpoch(part.epoch), part.implicit
    )


def _bounded(work: Iterable[Awaitable[T]]) -> list[Awaitable[T]]:
    """Limit how many of these run at the same time."""
    room = asyncio.Semaphore(limits.SPARK_ENDS_AT_ONCE_MAX)

    async def run(each: Awaitable[T]) -> T:
        async with room:
            return await each

    return [run(each) for each in work]
