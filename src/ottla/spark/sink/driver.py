"""The driver's side of exactly-once: before the tasks of a batch, after them, and when they failed.

Spark makes the writer anew for every micro-batch, and once more, in another process, to commit it. So nothing is kept
in memory: what `prepare` found out travels to the tasks as a `Ticket`, and comes back with their messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from ottla.client.cluster import Cluster
from ottla.client.producer import Producer
from ottla.client.producer_options import ProducerOptions
from ottla.client.transaction import OpenTransaction
from ottla.model import limits
from ottla.records.compress import Codec
from ottla.spark.sink import log, transactions
from ottla.spark.sink.faults import Step, reach
from ottla.spark.sink.protocol import Decision, Part, Prepared, Refused, decide, finished, prepared, to_end
from ottla.spark.sink.settings import WriteSettings

_log = logging.getLogger(__name__)
# Batch writes have no run of Spark's: all writes of one sink are numbered together.
BATCH_RUN = "batch"


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a batch begins with: the driver's hold on the sink, and the sink's state."""

    sink: str
    taken: OpenTransaction
    state: Prepared
    batch: int  # of batch writes; streams have their own number
    passing: bool  # a batch write without a name: nobody will ask for its state


@dataclass(frozen=True, slots=True)
class Written:
    """What one task has to say."""

    task: int
    ticket: Ticket
    run: str
    batch: int
    part: Part | None


def prepare(settings: WriteSettings) -> Ticket:
    """Fence other drivers, finish what was decided, abort what was not."""
    return asyncio.run(_prepare(settings))


async def _prepare(settings: WriteSettings) -> Ticket:
    sink = transactions.sink_name(settings.sink_id) if settings.sink_id else f"once-{uuid4().hex}"
    async with Cluster(settings.client(f"{sink}-driver")) as cluster:
        await log.ensure_topic(cluster)
        # Once more if something had to be written: the id is then taken anew, and the state read after that.
        while (found := await _take(cluster, sink)) is None:
            pass
    taken, state = found
    reach(Step.PREPARE_READY)
    return Ticket(sink, taken, state, _batch_of(settings, state), passing=settings.sink_id is None)


async def _take(cluster: Cluster, sink: str) -> tuple[OpenTransaction, Prepared] | None:
    """Take the sink and put it in order; None if its state was changed by that."""
    async with Producer(cluster, _producer(sink)) as producer:
        taken = await producer.take()
        reach(Step.PREPARE_FENCED)
        last = await log.read(cluster, sink)
        lost = await transactions.commit(cluster, to_end(last))
        reach(Step.PREPARE_ROLLED)
        await transactions.abort_open(cluster, sink)
        state = prepared(last, lost)
        if lost:
            _log.warning(
                "sink %s: %d transactions of its last batch were lost; it has to be run again", sink, len(lost)
            )
        if state.last is last:
            return taken, state
        await log.write(producer, sink, state.last)
        return None


def _batch_of(settings: WriteSettings, state: Prepared) -> int:
    if settings.batch_id is not None:
        return settings.batch_id
    return 0 if state.last is None or state.last.run != BATCH_RUN else state.last.batch + 1


def _producer(sink: str) -> ProducerOptions:
    return ProducerOptions(
        transactional_id=transactions.driver_id(sink),
        transaction_timeout_ms=limits.SPARK_DECISION_TIMEOUT_MS,
        linger_ms=0,
        # A decision names all parts: some 250 bytes of each task, a tenth of that when packed.
        codec=Codec.GZIP,
        max_request_bytes=limits.SPARK_DECISION_BYTES_MAX,
        auto_create_topics=False,
    )


def commit(settings: WriteSettings, messages: Sequence[Written], batch: int | None) -> None:
    """Decide the batch, then let every part of it be seen."""
    if messages:
        asyncio.run(_commit(settings, messages, batch))


async def _commit(settings: WriteSettings, messages: Sequence[Written], batch: int | None) -> None:
    first = messages[0]
    ticket = first.ticket
    if any(each.ticket.taken != ticket.taken or each.batch != first.batch for each in messages) or (
        batch is not None and batch != first.batch
    ):
        raise Refused(f"the tasks of batch {batch} do not belong together")
    parts = {each.task: each.part for each in messages}
    decision = decide(ticket.state, first.run, first.batch, len(messages), parts)
    if decision is None:
        return
    reach(Step.COMMIT_BEGUN)
    async with (
        Cluster(settings.client(f"{ticket.sink}-driver")) as cluster,
        Producer(cluster, _producer(ticket.sink)) as producer,
    ):
        producer.adopt(ticket.taken)
        await log.write(producer, ticket.sink, decision, step=Step.COMMIT_WRITTEN)
        reach(Step.COMMIT_DECIDED)
        await _end(cluster, decision)
        reach(Step.COMMIT_ENDED)
        await log.write(producer, ticket.sink, None if ticket.passing else finished(decision))
        reach(Step.COMMIT_DONE)
        await transactions.abort_open(cluster, ticket.sink)  # attempts that lost against another


async def _end(cluster: Cluster, decision: Decision) -> None:
    lost = await transactions.commit(cluster, decision.parts[:1])
    reach(Step.COMMIT_ONE_ENDED)
    lost += await transactions.commit(cluster, decision.parts[1:])
    if lost:
        raise Refused(
            f"batch {decision.batch} is decided, but the transactions of tasks {[part.task for part in lost]} ended "
            "before they were committed (they timed out): run the query again, which writes them again"
        )


def abort(settings: WriteSettings, messages: Sequence[Written | None]) -> None:
    """The job failed: nothing of it will be seen. What cannot be aborted now is by the next `prepare`."""
    parts = [each.part for each in messages if each is not None and each.part is not None]
    if parts:
        asyncio.run(_abort(settings, parts))


async def _abort(settings: WriteSettings, parts: Sequence[Part]) -> None:
    async with Cluster(settings.client("abort")) as cluster:
        await transactions.abort(cluster, parts)
