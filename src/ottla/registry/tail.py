"""The registry's topic as it is read: from the first record to the last, and on from there for ever.

Rules:
- Only what is committed is applied; a transaction that was aborted never happened.
- `position` is behind everything that was applied or skipped (markers, aborted records), so that to have reached an
  offset means to know everything before it.
- A topic that was deleted and made again, or that lost its end, is read from the start into a new machine.
- A broker that is away is waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.fetching import ConsumedRecord, Cursor, Fetcher, ReadOptions, decode_batch
from ottla.client.offsets import EARLIEST, LATEST, resolve
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

# A fetch ends as soon as something is written; the wait is for those that nobody writes to for hours.
_OPTIONS = ReadOptions(max_wait_ms=5_000, read_committed=True)


class Tail:
    """Reads the one partition and hands every record to `apply`; `restart` is called before it reads from the start."""

    def __init__(
        self, cluster: Cluster, topic: str, apply: Callable[[ConsumedRecord], None], restart: Callable[[], None]
    ) -> None:
        self.position = 0
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)
        self._apply = apply
        self._restart = restart
        self._moved = asyncio.Condition()
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def wait_for(self, offset: int) -> None:
        """Until everything before the offset is known."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.position >= offset)

    async def read_to_end(self, *, committed: bool = False) -> None:
        """Until everything is known that is in the log now (or of that, what is decided)."""
        ends = await resolve(self._cluster, [(self._partition, LATEST)], read_committed=committed)
        await self.wait_for(ends[self._partition])

    async def _read(self) -> None:
        tries = 0
        while True:
            try:
                await self._follow()
            except Exception as error:  # whatever it is: who no longer reads would keep everybody waiting
                tries += 1
                is_defect = not isinstance(error, ApiError | ClientError)
                log.error("%s is read again from the start: %s", self._partition.topic, error, exc_info=is_defect)
                self._cluster.metadata.forget(self._partition.topic)
                await asyncio.sleep(self._cluster.options.backoff_ms(tries) / 1000)

    async def _follow(self) -> None:
        """Read from the start until the topic is no longer the one it was."""
        topic_id = (await self._cluster.topic(self._partition.topic)).topic_id
        start = (await resolve(self._cluster, [(self._partition, EARLIEST)]))[self._partition]
        self._restart()
        await self._move(start)
        cursor = Cursor(self._partition, start)
        fetcher = Fetcher(self._cluster, _OPTIONS, patient=True)
        try:
            while True:
                fetcher.start([cursor])
                await fetcher.wait()
                for fetched in fetcher.collect():
                    if fetched.error is not None:
                        raise fetched.error
                    known = self._cluster.metadata.topics.get(self._partition.topic)
                    if known is not None and known.topic_id != topic_id:
                        raise ClientError("the topic was deleted and made again")
                    for raw in fetched.batches:
                        for record in decode_batch(raw):
                            self._apply(record)
                        await asyncio.sleep(0)  # a long log must not keep requests waiting
                    await self._move(fetched.next_offset)
        finally:
            await fetcher.close()

    async def _move(self, position: int) -> None:
        if position != self.position:
            async with self._moved:
                self.position = position
                self._moved.notify_all()
