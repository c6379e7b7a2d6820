"""The driver's side of the exactly-once protocol: before the tasks of a batch, after them, and when they failed.

Spark makes a new writer for every micro-batch, and another one, in another process, to commit it. So nothing is kept in
memory: the result of `prepare` is sent to the tasks as a `Ticket`, and comes back with their messages.

Rules:
- A batch is decided only while the transactions of all its parts are open. If one timed out before, the batch fails and
  nothing of it is written; it may have other rows when it is run again.
- Spark calls `abort` also after `commit` has failed, and the batch may be decided by then. Only the next `prepare`,
  which reads the decision, may abort the transactions of such a batch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.options import wall_clock_ms
from ottla.client.outcomes import Outcomes
from ottla.client.producer.handover import REFUSED, OutcomeUnknown
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.producer import Producer
from ottla.client.producer.transaction import OpenTransaction
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.compress import Codec
from ottla.spark.sink import log, transactions
from ottla.spark.sink.checkpoint import plan_of
from ottla.spark.sink.faults import FaultPoint, reach
from ottla.spark.sink.protocol import (
    BatchDecision,
    BatchRefused,
    Part,
    Prepared,
    TakenOver,
    UnfinishedBatch,
    decide,
    finished,
    is_new,
    missing,
    next_batch_write,
    prepared,
    to_end,
)
from ottla.spark.sink.settings import WriteSettings

_log = logging.getLogger(__name__)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class Ticket:
    """The result of `prepare` for a batch: the driver's transactional id with its epoch, and the state of the sink."""

    sink: str
    taken: OpenTransaction
    state: Prepared
    batch: int  # number of a batch write; streams have numbers of their own
    passing: bool  # a batch write without a name, whose state is not needed later
    made_ms: int  # before any task began


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The message of one task to the driver."""

    task: int
    run: str
    batch: int
    part: Part | None
    taken: OpenTransaction  # from the task's ticket
    ticket: (
        Ticket | None
    )  # only task 0 returns it: it may name thousands of lost parts, and there may be thousands of tasks


def written(ticket: Ticket, run: str, batch: int, task: int, part: Part | None) -> TaskReport:
    """The message of a task that is done."""
    return TaskReport(task, run, batch, part, ticket.taken, ticket if task == 0 else None)


def prepare(settings: WriteSettings) -> Ticket:
    """Fence other drivers, commit the transactions of a decided batch, and abort all others."""
    return asyncio.run(_prepare(settings))


async def _prepare(settings: WriteSettings) -> Ticket:
    sink = transactions.sink_name(settings.sink_id) if settings.sink_id else f"once-{uuid4().hex}"
    async with Cluster(settings.client(f"{sink}-driver")) as cluster:
        await log.ensure_topic(cluster)
        # Repeat if the state had to be written: then the transactional id is taken again, and the state read after
        # that.
        while (found := await _take(cluster, sink, settings.give_up)) is None:
            pass
    taken, state = found
    reach(FaultPoint.PREPARE_READY)
    return Ticket(
        sink, taken, state, _batch_of(settings, state), passing=settings.sink_id is None, made_ms=wall_clock_ms()
    )


async def _take(
    cluster: Cluster, sink: str, give_up: tuple[str, int] | None
) -> tuple[OpenTransaction, Prepared] | None:
    """Take the sink's transactional id and end open transactions; None if the state was changed by that."""
    async with Producer(cluster, _producer(sink)) as producer:
        taken = await producer.take()
        reach(FaultPoint.PREPARE_FENCED)
        last = await log.read(cluster, sink)
        lost = _lost(last, await transactions.commit(cluster, to_end(last)))
        reach(FaultPoint.PREPARE_ROLLED)
        await transactions.abort_open(cluster, sink)
        state = prepared(last, lost, give_up)
        if last is not None and lost:
            what = "have to be written again" if state.lost else "are given up"
            _log.warning("sink %s: %s; they %s", sink, missing(last, lost), what)
        if state.last is last:
            return taken, state
        await log.write(producer, sink, state.last)
        return None


def _lost(decision: BatchDecision | None, ends: Outcomes[Part, bool]) -> list[Part]:
    """The parts that were lost. Raises BatchRefused (or UnfinishedBatch) if that is not known of all parts."""
    lost = [part for part, committed in ends.found.items() if not committed]
    if decision is None or not ends.failed:
        return lost
    tasks, error = sorted(part.task for part in ends.failed), next(iter(ends.failed.values()))
    count, total = len(tasks), len(ends.failed) + len(ends.found)
    text = f"batch {decision.batch} is decided, but {count} of its {total} transactions, of tasks {tasks}, "
    if any(isinstance(each, OutcomeUnknown) for each in ends.failed.values()):
        raise BatchRefused(f"{text}ended, and nobody can tell any more whether they were committed: {error}") from error
    raise UnfinishedBatch(
        f"{text}could not be committed yet: {error}. Nothing is lost: run the query again, which commits them"
    ) from error


def _batch_of(settings: WriteSettings, state: Prepared) -> int:
    return next_batch_write(state.last) if settings.batch_id is None else settings.batch_id


def _producer(sink: str) -> ProducerOptions:
    return ProducerOptions(
        transactional_id=transactions.driver_id(sink),
        transaction_timeout_ms=limits.SPARK_DECISION_TIMEOUT_MS,
        linger_ms=0,
        # A decision names all parts: some 250 bytes per task, a tenth of that when compressed.
        codec=Codec.GZIP,
        max_request_bytes=limits.SPARK_DECISION_BYTES_MAX,
        auto_create_topics=False,
    )


def commit(settings: WriteSettings, messages: Sequence[TaskReport], batch: int | None) -> None:
    """Decide the batch, then commit the transactions of all its parts."""
    if messages:
        asyncio.run(_commit(settings, messages, batch))


async def _commit(settings: WriteSettings, messages: Sequence[TaskReport], batch: int | None) -> None:
    ticket = next((each.ticket for each in messages if each.ticket is not None), None)
    if ticket is None or any(each.taken != ticket.taken or each.batch != messages[0].batch for each in messages):
        raise BatchRefused(f"the tasks of batch {batch} do not belong together")
    async with Cluster(settings.client(f"{ticket.sink}-driver")) as cluster:
        try:
            decision = await _decision(cluster, settings, ticket, messages, batch)
        except BatchRefused:
            await transactions.abort(cluster, _parts(messages))
            raise
        if decision is not None:
            await _carry_out(cluster, ticket, decision)


async def _decision(
    cluster: Cluster, settings: WriteSettings, ticket: Ticket, messages: Sequence[TaskReport], batch: int | None
) -> BatchDecision | None:
    """The decision to write. Raises BatchRefused if the batch cannot be decided."""
    first = messages[0]
    if batch is not None and batch != first.batch:
        raise BatchRefused(f"the tasks of batch {batch} have written batch {first.batch}")
    parts = {each.task: each.part for each in messages}
    plan = plan_of(settings.checkpoint, first.batch)
    decision = decide(ticket.state, first.run, first.batch, len(messages), parts, plan)
    if decision is None:
        if not is_new(ticket.state, first.run, first.batch):
            _log.warning("sink %s: batch %d was written before; nothing is written again", ticket.sink, first.batch)
        return None
    reach(FaultPoint.COMMIT_BEGUN)
    over = await transactions.over(cluster, decision.parts)
    if over and not await transactions.is_held(cluster, ticket.taken):
        raise _taken_over(ticket, decision)
    if over:
        raise _ended(over, first.batch, wall_clock_ms() - ticket.made_ms, settings.transaction_timeout_ms)
    return decision


def _ended(over: Sequence[Part], batch: int, lasted_ms: int, timeout_ms: int) -> BatchRefused:
    """The error for transactions that ended too early. If they cannot have timed out yet, something else ended them,
    which will hardly happen again. If the batch lasted longer than the timeout, it will probably do so again.
    """
    what = (
        f"the transactions of tasks {[part.task for part in over]} ended before batch {batch} could be decided, "
        f"{lasted_ms} ms after it began"
    )
    if lasted_ms < timeout_ms:
        return UnfinishedBatch(
            f"{what}: another attempt of the task took its transactional id, or somebody aborted them. Nothing of the "
            "batch is written: run it again"
        )
    return BatchRefused(
        f"{what} (kafka.transaction.timeout.ms={timeout_ms}). Nothing of the batch is written: run it again, with "
        "smaller batches or a longer timeout"
    )


def _taken_over(ticket: Ticket, decision: BatchDecision) -> TakenOver:
    return TakenOver(
        f"another driver has taken over the sink {ticket.sink!r} (or its transactional id has expired): batch "
        f"{decision.batch} is not this one's to decide any more. Only one query may use a sink.id, and only one driver "
        "a checkpoint"
    )


async def _carry_out(cluster: Cluster, ticket: Ticket, decision: BatchDecision) -> None:
    async with Producer(cluster, _producer(ticket.sink)) as producer:
        producer.adopt(ticket.taken)
        try:
            await log.write(producer, ticket.sink, decision, step=FaultPoint.COMMIT_WRITTEN)
        except ApiError as error:
            if error.code in _TOO_LARGE:
                await transactions.abort(cluster, decision.parts)
                raise BatchRefused(
                    f"batch {decision.batch} has {len(decision.parts)} tasks, too many for one decision to name "
                    f"({error.text}). Nothing of it is written: run it with fewer partitions (coalesce)"
                ) from error
            if error.code not in REFUSED:
                raise
            # The decision may be written although the response was lost: nothing is aborted here.
            raise _taken_over(ticket, decision) from error
        reach(FaultPoint.COMMIT_DECIDED)
        await _end(cluster, decision)
        reach(FaultPoint.COMMIT_ENDED)
        await log.write(producer, ticket.sink, None if ticket.passing else finished(decision))
        reach(FaultPoint.COMMIT_DONE)
        try:
            await transactions.abort_open(cluster, ticket.sink)  # of attempts whose task another attempt completed
        except (ApiError, ClientError) as error:  # the batch is written; the next one tries again
            _log.warning("sink %s: transactions of attempts that were not needed are left open: %s", ticket.sink, error)


async def _end(cluster: Cluster, decision: BatchDecision) -> None:
    ends = await transactions.commit(cluster, decision.parts[:1])
    reach(FaultPoint.COMMIT_ONE_ENDED)
    ends.add(await transactions.commit(cluster, decision.parts[1:]))
    lost = _lost(decision, ends)
    if lost:
        raise UnfinishedBatch(
            f"batch {decision.batch} is decided, but the transactions of tasks {[part.task for part in lost]} ended "
            "before they were committed: run the query again, which writes them again"
        )


def abort(settings: WriteSettings, messages: Sequence[TaskReport | None]) -> None:
    """Abort the transactions of a job that failed. Those that cannot be aborted now are aborted by the next `prepare`.

    If all tasks are done, the commit has failed, and `commit` has aborted the transactions if the batch is surely not
    decided.
    """
    if all(each is not None for each in messages):
        return
    parts = _parts(messages)
    if parts:
        asyncio.run(_abort(settings, parts))


async def _abort(settings: WriteSettings, parts: Sequence[Part]) -> None:
    async with Cluster(settings.client("abort")) as cluster:
        for part, error in (await transactions.abort(cluster, parts)).failed.items():
            _log.warning("the transaction of %s is left open: %s", part.transactional_id, error)


def _parts(messages: Sequence[TaskReport | None]) -> list[Part]:
    return [each.part for each in messages if each is not None and each.part is not None]
