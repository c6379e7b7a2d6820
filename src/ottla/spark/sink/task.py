"""A task's side of the sink: it writes its rows in one transaction that it leaves open for the driver; or, with
at-least-once delivery, just sends them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import pyarrow as pa

from ottla.client.blocking.blocking import Blocking
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.options import wall_clock_ms
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError
from ottla.spark.sink.driver import TaskReport, Ticket, written
from ottla.spark.sink.faults import FaultPoint, reach
from ottla.spark.sink.protocol import Part, RecordPosition, Work, check_rewritten, work_of
from ottla.spark.sink.rows import RowSender
from ottla.spark.sink.settings import WriteSettings
from ottla.spark.sink.transactions import free_id


def send(settings: WriteSettings, batches: Iterable[pa.RecordBatch]) -> int:
    """Send rows with at-least-once delivery and return their number."""
    with Blocking(settings.client("task"), settings.producer()) as client:
        rows = RowSender(client, client.inner, settings.topic, wall_clock_ms)
        for batch in batches:
            rows.add(batch)
        rows.flush()
        return rows.rows


def write(
    settings: WriteSettings,
    ticket: Ticket,
    batches: Iterable[pa.RecordBatch],
    *,
    run: str,
    batch: int,
    task: int,
    attempt: int,
) -> TaskReport:
    """Write the rows of one task, unless they were written before; the transaction stays open."""
    work, lost = work_of(ticket.state, run, batch, task)
    part: Part | None = None
    if work is Work.NOTHING:
        for _ in batches:  # Spark needs its rows to be consumed
            pass
    else:
        part = _write(settings, ticket.sink, batches, task, attempt, lost)
    return written(ticket, run, batch, task, part)


def _write(
    settings: WriteSettings, sink: str, batches: Iterable[pa.RecordBatch], task: int, attempt: int, lost: Part | None
) -> Part | None:
    filled = (batch for batch in batches if batch.num_rows)
    first_batch = next(filled, None)
    if first_batch is None:
        return None
    with Blocking(settings.client("task")) as client:
        producer = client.run(_producer(client.cluster, settings, sink, task, attempt))
        try:
            client.run(producer.begin())
            reach(FaultPoint.TASK_BEGUN)
            rows = RowSender(client, producer, settings.topic, wall_clock_ms)
            rows.add(first_batch)
            for batch in filled:
                rows.add(batch)
            rows.send()
            reach(FaultPoint.TASK_WRITTEN)
            rows.flush()
            if lost is not None:
                check_rewritten(lost, rows.rows, rows.size_bytes)
            opened = client.run(producer.hand_over())
        except BaseException:
            with contextlib.suppress(ApiError, ClientError, RuntimeError):  # the driver aborts open transactions
                client.run(producer.abort())
            raise
        finally:
            client.run(producer.close(discard=True))
        reach(FaultPoint.TASK_FLUSHED)
        first = rows.first_place()
        assert first is not None
        return Part(task, *opened, rows.rows, rows.size_bytes, RecordPosition(*first))


async def _producer(cluster: Cluster, settings: WriteSettings, sink: str, task: int, attempt: int) -> Producer:
    return Producer(cluster, settings.producer(await free_id(cluster, sink, task, attempt)))
