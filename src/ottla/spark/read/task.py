"""One Spark task: reads one range of one partition, also while brokers restart or leaders change.

Rules:
- The task has an event loop of its own, which runs only while the task waits; the next Fetch is under way while Spark
  takes rows.
- Errors that pass (leader changes, brokers that restart, a cluster not reached yet) are retried for
  `kafka.default.api.timeout.ms`. Records that are gone for good are a `DataLoss` with its reason.
- The range is read when the position has passed its last offset, whether there are records or not: gaps are no loss.
  The brokers' answers prove a gap: a batch that begins behind it, a transaction marker, or the batch without records
  that compaction leaves at the end of what it cleaned. Offsets that are readable and for which nothing comes are no
  gap: with `failOnDataLoss` they fail the task, without it they are passed over with a warning.
- Rows are of the topic id, and not of a later leader epoch, than the range was planned with. Other records at the same
  offsets are not part of the range: the next batch reads them, from where they begin (`spark.read.snapshot`).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from ottla.client.cluster import Cluster
from ottla.client.consumer.epochs import epoch_ends
from ottla.client.consumer.fetching import ConsumerFetcher, FetchCursor, Fetched, RawBatch
from ottla.client.errors import ClientError, LastingError, LogTruncated, OffsetOutOfRange, TopicRecreated
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, LeaderEpoch
from ottla.spark.options import (
    FETCH_OFFSET_NUM_RETRIES,
    FETCH_OFFSET_RETRY_INTERVAL_MS,
    KAFKA_CONSUMER_POLL_TIMEOUT_MS,
    ROWS_PER_BATCH,
)
from ottla.spark.read.loss import DataLoss, Reason, report
from ottla.spark.read.plan import TaskRange
from ottla.spark.read.settings import ReadSettings
from ottla.spark.runtime.worker_memory import settle

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
# How long responses must be empty until offsets below the high watermark are passed over, if that is allowed. A broker
# that throttles, or waits for remote storage, sends empty responses, too, and records that are passed over are never
# read.
_GAP_MS = 30_000
_NOT_SENT = (
    "the broker says that they can be read and sends nothing. They may come when the query is started again; "
    "set the option failOnDataLoss to false to pass over them"
)


def read_range(
    settings: ReadSettings, part: TaskRange, client_id: str, columns: Sequence[str] | None = None
) -> "Iterator[pa.RecordBatch]":
    """The rows of a range, with these columns (by default those of the options)."""
    from ottla.spark.read.rows import Rows  # imports numba, which only executors need

    topic, partition = part.partition
    rows = Rows(topic, partition, columns or settings.columns, settings.options[ROWS_PER_BATCH])
    loop = asyncio.new_event_loop()
    try:
        answers = _Reading(settings, part, client_id).answers()
        try:
            while (found := loop.run_until_complete(_next(answers))) is not None:
                yield from rows.add(found)
        finally:
            loop.run_until_complete(answers.aclose())
        yield from rows.rest()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        settle()


async def _next(answers: "AsyncGenerator[list[RawBatch], None]") -> list[RawBatch] | None:
    return await anext(answers, None)


class _Reading:
    """The state of reading one range."""

    def __init__(self, settings: ReadSettings, part: TaskRange, client_id: str) -> None:
        self._settings = settings
        self._part = part
        self._options = settings.kafka.client_options(settings.kafka.get("client.id") or client_id)
        self._fetch = settings.fetch_options()
        self._cursor = FetchCursor(part.partition, part.start, part.end, part.topic_id)
        self._asked_at = part.start
        self._empty_since_s: float | None = None

    async def answers(self) -> AsyncGenerator[list[RawBatch], None]:
        """The record batches of each response of a broker, until the range is read."""
        async with Cluster(self._options) as cluster, aclosing(self.answers_of(cluster)) as found:
            async for batches in found:
                yield batches

    async def answers_of(self, cluster: Cluster) -> AsyncGenerator[list[RawBatch], None]:
        """The same, of this cluster."""
        await self._reach(cluster)
        fetcher = ConsumerFetcher(cluster, self._fetch)
        try:
            async with aclosing(self._fetched(cluster, fetcher)) as found:
                async for batches in found:
                    yield batches
        except ApiError as error:
            if error.code not in _GONE or await self._is_same_topic(cluster):
                raise
        finally:
            await fetcher.close()

    async def _fetched(self, cluster: Cluster, fetcher: ConsumerFetcher) -> AsyncGenerator[list[RawBatch], None]:
        while not self._cursor.done and await self._is_same_topic(cluster):
            fetcher.start([self._cursor])
            await fetcher.wait()
            for fetched in fetcher.collect():
                if fetched.error is not None:
                    self._pass_over(fetched.error)
                    continue
                self._look_at_empty(fetched, asyncio.get_running_loop().time())
                is_doubtful = NO_LEADER_EPOCH < self._part.leader_epoch < fetched.next_epoch
                planned = self._planned(fetched.batches) if is_doubtful else fetched.batches
                if not is_doubtful and not self._cursor.done:
                    fetcher.start([self._cursor])  # the broker works while Spark takes these batches
                if planned:
                    yield planned
                if is_doubtful:
                    await self._look_for_cut(cluster)

    async def _reach(self, cluster: Cluster) -> None:
        """Wait until the leader is known. A broker that is down now may be up in a moment: the driver has reached this
        cluster.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._options.api_timeout_ms / 1000
        tries = 0
        while True:
            try:
                await cluster.leader(self._part.partition)
                return
            except (ClientError, ApiError) as error:
                if isinstance(error, ApiError) and error.code in _GONE:
                    return  # the first fetch finds out why
                passes = error.code.retriable if isinstance(error, ApiError) else not isinstance(error, LastingError)
                tries += 1
                wait_s = self._options.backoff_ms(tries) / 1000
                if not passes or loop.time() + wait_s > deadline_s:
                    raise
                await asyncio.sleep(wait_s)

    # --- data loss and gaps ---------------------------------------------------------------------------------------

    def _lose(self, loss: DataLoss) -> None:
        report(loss, fail=self._settings.fail_on_data_loss)
        self._cursor.position = self._part.end

    def _planned(self, batches: list[RawBatch]) -> list[RawBatch]:
        """The batches that existed when the range was planned."""
        return [each for each in batches if each.header.leader_epoch <= self._part.leader_epoch]

    async def _look_for_cut(self, cluster: Cluster) -> None:
        """Find out why a batch of a later leader epoch than that of the plan came. If the epoch of the plan reaches to
        the end of the range, compaction has removed the records before that batch; else other records have replaced
        what was planned.
        """
        partition, end, epoch = self._part.partition, self._part.end, self._part.leader_epoch
        cut = (await epoch_ends(cluster, {partition: LeaderEpoch(epoch)})).all()[partition]
        if cut is None or cut < end:
            first = max(self._part.start, cut or 0)
            what = f"offsets {first} to {end - 1} of {partition} are gone: others of a later leader epoch are there now"
            self._lose(DataLoss(partition, Reason.TRUNCATED, what))

    def _pass_over(self, error: Exception) -> None:
        """Continue behind records that are gone, if that is allowed; raise other errors."""
        partition, position = self._part.partition, self._cursor.position
        if isinstance(error, TopicRecreated):
            self._lose(self._gone(Reason.RECREATED))
        elif isinstance(error, OffsetOutOfRange) and error.offset < error.start_offset:
            if not (self._part.from_earliest and position == self._part.start):
                what = f"offsets {position} to {error.start_offset - 1} of {partition} are gone"
                report(DataLoss(partition, Reason.RETENTION, what), fail=self._settings.fail_on_data_loss)
            self._cursor.position = error.start_offset
        elif isinstance(error, LogTruncated):
            what = f"{partition} was read up to {position} and now ends at {error.end_offset}"
            self._lose(DataLoss(partition, Reason.TRUNCATED, what))
        elif isinstance(error, OffsetOutOfRange):
            what = f"offsets {position} to {self._part.end - 1} of {partition} are gone: it ends at {error.end_offset}"
            reason = Reason.AHEAD if position == self._part.start else Reason.TRUNCATED
            self._lose(DataLoss(partition, reason, what))
        elif isinstance(error, ApiError):
            raise ApiError(error.code, f"{partition} cannot be read at offset {position}: {error.text}") from error
        else:
            raise error

    def _look_at_empty(self, fetched: Fetched, now_s: float) -> None:
        """Give up when responses stay empty. If the offsets are below the end of what may be read, only a broker with
        a defect or a very slow one sends nothing for them. Otherwise, if the high watermark is before the end of the
        range, the log was truncated; if not, a transaction is open.
        """
        has_moved = fetched.next_offset > self._asked_at
        self._asked_at = fetched.next_offset
        if has_moved or self._empty_since_s is None:
            # Count from the first empty response on: before it, Spark may have taken long to process rows.
            self._empty_since_s = None if has_moved else now_s
            return
        waited_ms = (now_s - self._empty_since_s) * 1000
        readable_to = fetched.last_stable_offset if self._settings.read_committed else fetched.high_watermark
        patience_ms = self._settings.options[KAFKA_CONSUMER_POLL_TIMEOUT_MS]
        partition = self._part.partition
        what = f"offsets {self._cursor.position} to {self._part.end - 1} of {partition} do not come"
        if readable_to >= self._part.end:
            if self._settings.fail_on_data_loss:
                if waited_ms >= patience_ms:
                    raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{what} for {waited_ms:.0f} ms: {_NOT_SENT}")
            elif waited_ms >= min(_GAP_MS, patience_ms):
                _log.warning("%s for %.0f ms: taken for a gap that compaction left, and passed over", what, waited_ms)
                self._cursor.position = self._part.end
        elif waited_ms > patience_ms and fetched.high_watermark >= self._part.end:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"{what}: a transaction is open at {readable_to}")
        elif waited_ms > patience_ms:
            self._lose(DataLoss(partition, Reason.TRUNCATED, f"{what}: it can be read up to {readable_to}"))

    async def _is_same_topic(self, cluster: Cluster) -> bool:
        """Whether the topic and the partition of the plan still exist. If not, the loss is reported, which may
        raise. It is believed only if it is found several times: a broker that has just started may not know the topic
        yet.
        """
        topic, index = self._part.partition
        options = self._settings.options
        for attempt in range(max(options[FETCH_OFFSET_NUM_RETRIES], 1)):
            if attempt:
                cluster.metadata.mark_stale(topic)
                await asyncio.sleep(options[FETCH_OFFSET_RETRY_INTERVAL_MS] / 1000)
            try:
                info = await cluster.topic(topic)
            except ApiError as error:
                if error.code not in _GONE:
                    raise
                reason = Reason.TOPIC_DELETED
                continue
            if NO_ID not in (self._part.topic_id, info.topic_id) and info.topic_id != self._part.topic_id:
                reason = Reason.RECREATED
            elif info.partition(index) is None:
                reason = Reason.PARTITION_GONE
            else:
                return True
        self._lose(self._gone(reason))
        return False

    def _gone(self, reason: Reason) -> DataLoss:
        partition = self._part.partition
        what = f"offsets {self._cursor.position} to {self._part.end - 1} of {partition} are gone"
        return DataLoss(partition, reason, what)
