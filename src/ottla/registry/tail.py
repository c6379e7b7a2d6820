"""Reads the registry's topic: from the first record to the last, and on from there for ever.

Rules:
- Only committed records are applied; those of aborted transactions are skipped.
- `position` is behind everything that was applied or skipped (markers, aborted records): once an offset is reached,
  everything before it is known.
- `state` always represents a whole log. The log is read anew from its start when it is another one (deleted and
  recreated), when it lost its end or its beginning (a fetch fails, or the log or the leader epoch that was read last
  ends before `position`), and when a record could not be applied. The new state is built separately and replaces the
  old one when it includes all that was committed when this reading began and is still there. Until then `state` stays
  as it was, and waits for an offset go on.
- A batch that cannot be decoded (brokers do not check the contents) is skipped, as by brokers that read the topic
  themselves: nothing was ever registered by it.
- An error of the broker says nothing about the records that were read: reading continues from the same position.
- A record that cannot be applied a second time blocks the reading: `trouble` says so, waiting callers get an error, and
  the log is read again only now and then.
- An unreachable broker is waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Generic, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.consumer.epochs import epoch_ends
from ottla.client.consumer.fetching import (
    ConsumedRecord,
    ConsumerFetcher,
    FetchCursor,
    Fetched,
    RawBatch,
    ReadOptions,
    decode_batch,
)
from ottla.client.consumer.offsets import EARLIEST, LATEST, resolve
from ottla.client.errors import AuthenticationError, ClientError, LogTruncated, OffsetOutOfRange
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, LeaderEpoch, TopicPartition

log = logging.getLogger(__name__)

# A fetch ends as soon as something is written; the long wait is for topics without writes for hours.
_OPTIONS = ReadOptions(max_wait_ms=5_000, read_committed=True)

S = TypeVar("S")


class ReadAnew(ClientError):
    """The log is being read from its start: the awaited offset may belong to other records now."""

    maybe_applied = True


class Unreadable(ClientError):
    """A record of the log cannot be applied, however often it is read."""

    maybe_applied = True


class _Unfit(Exception):
    """A fetched record cannot be applied."""

    def __init__(self, offset: int, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.offset = offset


class Tail(Generic[S]):
    """Reads the one partition: `begin` makes an empty state, and `apply` applies a record to it. `change` excludes
    threads that read `state` meanwhile.
    """

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
        self.reading = 0  # number of readings from the start of the log
        self.trouble: str | None = None  # why `state` cannot be brought up to date
        self._current = False  # whether `state` comes from this reading
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)
        self._begin = begin
        self._apply = apply
        self._change = change
        self._tries = 0  # attempts since something was read
        self._topic_id = NO_ID  # of the topic that is read
        self._epoch: LeaderEpoch = NO_LEADER_EPOCH  # leader epoch of the last batch before `position`
        self._shortened = False  # the log was cut before `position`
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
        """Whether `state` comes from the current reading of the log, not from an earlier one."""
        return self._current

    async def wait_for(self, offset: int, reading: int) -> None:
        """Wait until everything before the offset is known. `reading` is the reading to which the offset belongs:
        raises ReadAnew if the log is read from its start since. Raises Unreadable if a record cannot be applied.
        """
        async with self._moved:
            await self._moved.wait_for(
                lambda: self.reading != reading or self.trouble or (self._current and self.position >= offset)
            )
        if self.trouble is not None:
            raise Unreadable(self.trouble)
        if self.reading != reading:
            raise ReadAnew(f"{self._partition.topic} is being read from its start")

    async def read_to_end(self, *, committed: bool = False) -> None:
        """Wait until everything that is in the log now (`committed`: up to the last stable offset) is known."""
        while True:
            reading, position = self.reading, self.position
            end = await self._end(committed=committed)
            try:
                is_other = end < position or await self._is_replaced()
                if is_other and reading == self.reading and self._current:
                    self._shortened, self._current = True, False
                    self._news.set()
                return await self.wait_for(end, reading)
            except ReadAnew:
                continue

    async def _end(self, *, committed: bool) -> int:
        return (await resolve(self._cluster, [(self._partition, LATEST)], read_committed=committed))[self._partition]

    async def _is_replaced(self) -> bool:
        """Whether the log is another one, though it does not end before `position`: the topic has another id, or the
        leader epoch of the last batch that was read ends before `position` (KIP-320).
        """
        topic, epoch, position = self._partition.topic, self._epoch, self.position
        self._cluster.metadata.mark_stale(topic)
        info = await self._cluster.topic(topic)
        if info.topic_id != self._topic_id:
            return True
        if epoch == NO_LEADER_EPOCH or info.leader(self._partition.partition)[1] == epoch:
            return False
        end = (await epoch_ends(self._cluster, {self._partition: epoch})).all()[self._partition]
        return end is not None and end < position

    # --- one reading after the other ----------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                await self._follow()
            except _Unfit as unfit:
                await self._stumble(unfit)
            except Exception as error:  # reading must go on after any error, or callers would wait for ever
                is_defect = not isinstance(error, ApiError | ClientError)
                log.error("%s is read again from the start: %s", self._partition.topic, error, exc_info=is_defect)
                await self._pause(limits.REGISTRY_LOGIN_PAUSE_S if isinstance(error, AuthenticationError) else 0.0)

    async def _pause(self, least_s: float = 0.0) -> None:
        self._tries += 1
        self._cluster.metadata.mark_stale(self._partition.topic)
        await asyncio.sleep(max(self._cluster.options.backoff_ms(self._tries) / 1000, least_s))

    async def _stumble(self, unfit: _Unfit) -> None:
        """Handle a record that could not be applied: read again at once, in case it was chance; the second time,
        pause.
        """
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
        """Read from the start until the log is no longer the same."""
        self.reading += 1
        self._shortened = False
        async with self._moved:
            self._moved.notify_all()
        self._topic_id = (await self._cluster.topic(self._partition.topic)).topic_id
        start = (await resolve(self._cluster, [(self._partition, EARLIEST)]))[self._partition]
        end = await self._end(committed=True)
        state = self._begin()
        await self._reach(state, start, end, NO_LEADER_EPOCH)
        cursor = FetchCursor(self._partition, start)
        fetcher = ConsumerFetcher(self._cluster, _OPTIONS, patient=True, wake=lambda _: self._news.set())
        try:
            while True:
                fetcher.start([cursor])
                await self._news.wait()
                self._news.clear()
                if self._shortened:
                    raise _OtherLog("the log ends before what was read of it")
                for fetched in fetcher.collect():
                    self._check()
                    if fetched.error is not None:
                        await self._endure(fetched.error)
                    else:  # after an error from here on the log is read again: the cursor has moved
                        await self._take(state, fetched)
                        if not self._current and not fetched.batches and fetched.next_offset < end:
                            end = min(end, await self._end(committed=True))  # the log may have lost its end
                        await self._reach(state, fetched.next_offset, end, fetched.next_epoch)
        finally:
            self._current = False  # before any other task runs
            await fetcher.close()

    async def _endure(self, error: Exception) -> None:
        """Handle a failed fetch: pause and continue from the same position, unless the error is about the records
        read.
        """
        if isinstance(error, OffsetOutOfRange | LogTruncated) or not isinstance(error, ApiError | ClientError):
            raise error
        if not self._tries:
            log.error("%s cannot be read just now: %s", self._partition.topic, error)
        await self._pause()

    def _check(self) -> None:
        known = self._cluster.metadata.topics.get(self._partition.topic)
        if known is not None and known.topic_id != self._topic_id:
            raise _OtherLog("the topic was deleted and made again")

    async def _take(self, state: S, fetched: Fetched) -> None:
        for raw in fetched.batches:
            async with self._change() if self._current else nullcontext():
                await self._take_batch(state, raw)
            await asyncio.sleep(0)  # a long log must not hold up requests

    async def _take_batch(self, state: S, raw: RawBatch) -> None:
        for number, record in enumerate(self._readable(raw), 1):
            try:
                self._apply(state, record)
            except Exception as cause:
                raise _Unfit(record.offset, cause) from cause
            if number % limits.REGISTRY_RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _readable(self, raw: RawBatch) -> Iterator[ConsumedRecord]:
        """Yield the records of a batch, or those before the first that cannot be decoded."""
        try:
            yield from decode_batch(raw)
        except Exception as error:
            is_defect = not isinstance(error, ApiError)
            what = "the batch at offset %d of %s cannot be read: passed over (%s)"
            log.error(what, raw.header.base_offset, self._partition.topic, error, exc_info=is_defect)

    async def _reach(self, state: S, position: int, end: int, epoch: LeaderEpoch) -> None:
        """Note that the state includes everything before the position; from `end` on it becomes the current state."""
        self._tries = 0
        if self._unfit_at is not None and position > self._unfit_at:
            self._unfit_at = None
        if position < end and not self._current:
            return
        async with self._moved:
            self.state, self.position, self._epoch, self._current = state, position, epoch, True
            self.trouble = None
            self._moved.notify_all()


class _OtherLog(ClientError):
    """The log is not the one whose records were read."""
