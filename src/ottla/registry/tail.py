"""The registry's topic as it is read: from the first record to the last, and on from there for ever.

Rules:
- Only what is committed is applied; a transaction that was aborted never happened.
- `position` is behind everything that was applied or skipped (markers, aborted records), so that to have reached an
  offset means to know everything before it.
- `state` always holds a whole log. The log is read anew from its start when it is another one (deleted and made again),
  when it lost its end or its beginning (a fetch says so, or it ends before what was read), and when a record could not
  be applied. The new state is built aside and takes
  the place of the old one when it holds all that was committed when this reading began. Until then `state` stays what
  it was, and nobody who waits for an offset is told that it was reached.
- A batch that cannot be read (brokers take what it holds as it is) is passed over, as brokers do that read the topic
  themselves: nothing was ever registered by it.
- An error of the broker says nothing about the records that were read: reading goes on from where it was.
- A record that cannot be applied a second time stays in the way: `trouble` says so, whoever waits is told, and the log
  is read again only now and then.
- A broker that is away is waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Generic, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import (
    ConsumedRecord,
    FetchCursor,
    Fetched,
    Fetcher,
    RawBatch,
    ReadOptions,
    decode_batch,
)
from ottla.client.consumer.offsets import EARLIEST, LATEST, resolve
from ottla.client.errors import ClientError, LogTruncated, OffsetOutOfRange
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

# A fetch ends as soon as something is written; the wait is for those that nobody writes to for hours.
_OPTIONS = ReadOptions(max_wait_ms=5_000, read_committed=True)

S = TypeVar("S")


class ReadAnew(ClientError):
    """The log is being read from its start: what was waited for may be elsewhere in it, or gone."""

    maybe_applied = True


class Unreadable(ClientError):
    """A record of the log cannot be applied, however often it is read."""

    maybe_applied = True


class _Unfit(Exception):
    """What was fetched cannot be taken in."""

    def __init__(self, offset: int, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.offset = offset


class Tail(Generic[S]):
    """Reads the one partition: `begin` makes an empty state, and `apply` takes a record into it. Whoever reads `state`
    outside the loop is kept out by `change` meanwhile."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        begin: Callable[[], S],
        apply: Callable[[S, ConsumedRecord], None],
        change: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self.state: S | None = None  # None until the log was read once
        self.position = 0  # of `state`
        self.reading = 0  # counts the times that the log was begun from its start
        self.trouble: str | None = None  # why `state` cannot be brought up to date
        self._current = False  # whether `state` is that of this reading
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)
        self._begin = begin
        self._apply = apply
        self._change = change
        self._tries = 0  # since something was read
        self._shortened = False  # the log ends before `position`
        self._news = asyncio.Event()
        self._unfit_at: int | None = None
        self._moved = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._read())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def is_current(self) -> bool:
        """Whether `state` is what the log led to, and not what an earlier reading of it did."""
        return self._current

    async def wait_for(self, offset: int, reading: int) -> None:
        """Until everything before the offset is known. `reading` is when the offset was heard of: ReadAnew if the log
        has been begun from its start since. Raises Unreadable when nobody knows whether that will ever be."""
        async with self._moved:
            await self._moved.wait_for(
                lambda: self.reading != reading or self.trouble or (self._current and self.position >= offset)
            )
        if self.trouble is not None:
            raise Unreadable(self.trouble)
        if self.reading != reading:
            raise ReadAnew(f"{self._partition.topic} is being read from its start")

    async def read_to_end(self, *, committed: bool = False) -> None:
        """Until everything is known that is in the log now (or of that, what is decided)."""
        while True:
            reading = self.reading
            ends = await resolve(self._cluster, [(self._partition, LATEST)], read_committed=committed)
            try:
                if ends[self._partition] < self.position and reading == self.reading and self._current:
                    self._shortened, self._current = True, False
                    self._news.set()
                return await self.wait_for(ends[self._partition], reading)
            except ReadAnew:
                continue

    # --- one reading after the other ----------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                await self._follow()
            except _Unfit as unfit:
                await self._stumble(unfit)
            except Exception as error:  # whatever it is: who no longer reads would keep everybody waiting
                is_defect = not isinstance(error, ApiError | ClientError)
                log.error("%s is read again from the start: %s", self._partition.topic, error, exc_info=is_defect)
                await self._pause()

    async def _pause(self) -> None:
        self._tries += 1
        self._cluster.metadata.mark_stale(self._partition.topic)
        await asyncio.sleep(self._cluster.options.backoff_ms(self._tries) / 1000)

    async def _stumble(self, unfit: _Unfit) -> None:
        """A record could not be applied: at once from the start, in case it was chance; the second time it is not."""
        what = f"the record at offset {unfit.offset} of {self._partition.topic} cannot be taken in ({unfit})"
        if unfit.offset != self._unfit_at:
            log.error("%s: the topic is read again from the start", what, exc_info=unfit.__cause__)
            self._unfit_at = unfit.offset
            return
        pause_ms = limits.REGISTRY_UNREADABLE_RETRY_MS
        if self.trouble is None:
            log.error("%s: nothing is written until it can be; tried again every %d s", what, pause_ms // 1000)
        async with self._moved:
            self.trouble = what
            self._moved.notify_all()
        await asyncio.sleep(pause_ms / 1000)

    async def _follow(self) -> None:
        """Read from the start until the topic is no longer the one it was."""
        self.reading += 1
        self._shortened = False
        async with self._moved:
            self._moved.notify_all()
        topic_id = (await self._cluster.topic(self._partition.topic)).topic_id
        start = (await resolve(self._cluster, [(self._partition, EARLIEST)]))[self._partition]
        end = (await resolve(self._cluster, [(self._partition, LATEST)], read_committed=True))[self._partition]
        state = self._begin()
        await self._reach(state, start, end)
        cursor = FetchCursor(self._partition, start)
        fetcher = Fetcher(self._cluster, _OPTIONS, patient=True, wake=lambda _: self._news.set())
        try:
            while True:
                fetcher.start([cursor])
                await self._news.wait()
                self._news.clear()
                if self._shortened:
                    raise _OtherLog("the log ends before what was read of it")
                for fetched in fetcher.collect():
                    self._check(topic_id)
                    if fetched.error is not None:
                        await self._endure(fetched.error)
                    else:  # whatever goes wrong from here on, the log is read again: the cursor is behind it
                        await self._take(state, fetched)
                        await self._reach(state, fetched.next_offset, end)
        finally:
            self._current = False  # before anybody else has a turn
            await fetcher.close()

    async def _endure(self, error: Exception) -> None:
        """Nothing came. If that says nothing about the records that were read, reading goes on from where it was."""
        if isinstance(error, OffsetOutOfRange | LogTruncated) or not isinstance(error, ApiError | ClientError):
            raise error
        if not self._tries:
            log.error("%s cannot be read just now: %s", self._partition.topic, error)
        await self._pause()

    def _check(self, topic_id: bytes) -> None:
        known = self._cluster.metadata.topics.get(self._partition.topic)
        if known is not None and known.topic_id != topic_id:
            raise _OtherLog("the topic was deleted and made again")

    async def _take(self, state: S, fetched: Fetched) -> None:
        for raw in fetched.batches:
            async with self._change() if self._current else nullcontext():
                await self._take_batch(state, raw)
            await asyncio.sleep(0)  # a long log must not keep requests waiting

    async def _take_batch(self, state: S, raw: RawBatch) -> None:
        for number, record in enumerate(self._readable(raw), 1):
            try:
                self._apply(state, record)
            except Exception as cause:
                raise _Unfit(record.offset, cause) from cause
            if number % limits.REGISTRY_RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _readable(self, raw: RawBatch) -> Iterator[ConsumedRecord]:
        """The records of a batch, or those before the first that cannot be read."""
        try:
            yield from decode_batch(raw)
        except Exception as error:
            is_defect = not isinstance(error, ApiError)
            what = "the batch at offset %d of %s cannot be read: passed over (%s)"
            log.error(what, raw.header.base_offset, self._partition.topic, error, exc_info=is_defect)

    async def _reach(self, state: S, position: int, end: int) -> None:
        """Everything before the position is in the state; from the end on it is the one that counts."""
        self._tries = 0
        if self._unfit_at is not None and position > self._unfit_at:
            self._unfit_at = None
        if position < end and not self._current:
            return
        async with self._moved:
            self.state, self.position, self._current = state, position, True
            self.trouble = None
            self._moved.notify_all()


class _OtherLog(ClientError):
    """The log of this topic is not the one whose records were read."""
