"""Reading partitions without a group: from an offset or a time, up to an end or for ever.

Rules:
- The next Fetch is under way while the records of the last one are handed out; `client.fetching` does both.
- Records before the wanted start and from the wanted end on are dropped.
- An offset that the log no longer has (or does not have yet) is `OffsetOutOfRange`, never a silent jump.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.arrow import LINGER_MS, ROWS_MIN, Gathering, converter
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.fetching import ConsumedRecord, Cursor, Fetcher, RawBatch, ReadOptions, decode_batch
from ottla.client.offsets import EARLIEST, LATEST, Time, out_of_range, resolve
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ConsumedRecord", "RangeReader", "RawBatch", "ReadOptions", "Span", "decode_batch"]


class Span(NamedTuple):
    """Part of one partition: [start, end). An end of None means: follow the partition for ever.

    A `Time` is turned into an offset when reading begins; so `end=LATEST` is the end as it is then.
    """

    topic: str
    partition: int
    start: int | Time = EARLIEST
    end: int | Time | None = LATEST


class RangeReader(Closing):
    """Reads spans: `async with RangeReader(cluster, [Span("topic", 0)]) as reader: async for record in reader: ...`."""

    def __init__(self, cluster: Cluster, spans: Iterable[Span], options: ReadOptions | None = None) -> None:
        self._cluster = cluster
        self._spans = list(spans)
        self.options = options or ReadOptions()
        self._cursors: dict[TopicPartition, Cursor] | None = None
        self._fetcher = Fetcher(cluster, self.options)

    async def close(self) -> None:
        """Stop fetching."""
        await self._fetcher.close()

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to be fetched per partition (what was fetched may not have been handed out yet)."""
        return {partition: cursor.position for partition, cursor in (self._cursors or {}).items()}

    def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        return self.records()

    async def records(self) -> AsyncGenerator[ConsumedRecord, None]:
        """The records of all spans; in order within a partition."""
        async with aclosing(self.batches()) as batches:
            async for raw in batches:
                for record in decode_batch(raw):
                    yield record

    async def batches(self) -> AsyncGenerator[RawBatch, None]:
        """The batches of all spans, undecoded; the first and the last may reach beyond the span."""
        async with aclosing(self._answers()) as answers:
            async for found in answers:
                for raw in found:
                    yield raw

    async def arrow(
        self, *, rows_min: int = ROWS_MIN, linger_ms: float = LINGER_MS
    ) -> "AsyncGenerator[pa.RecordBatch, None]":
        """The records of all spans as `pyarrow.RecordBatch`es, some `rows_min` rows each, fewer if so many do not come
        in `linger_ms`."""
        convert = converter()
        gathering = Gathering(rows_min)
        async with aclosing(self._answers(linger_ms / 1000)) as answers:
            async for found in answers:
                for batches in gathering.fill(found):
                    yield convert(batches)
                if not found and gathering.batches:
                    yield convert(gathering.take())
        if gathering.batches:
            yield convert(gathering.take())

    async def _answers(self, wait_s: float | None = None) -> AsyncGenerator[list[RawBatch], None]:
        """What the brokers' answers bring; nothing whenever none has come for so long."""
        await self._open()
        try:
            while self._start():
                await self._fetcher.wait(wait_s)
                ready: list[RawBatch] = []
                for fetched in self._fetcher.collect():
                    if fetched.error is not None:
                        raise fetched.error
                    ready.extend(fetched.batches)
                if ready:
                    self._start()  # the broker works while the caller does
                yield ready
        finally:
            await self.close()

    def _start(self) -> bool:
        """Fetch what is unfinished; False when nothing is."""
        assert self._cursors is not None
        self._fetcher.start(cursor for cursor in self._cursors.values() if not cursor.done)
        return bool(self._fetcher)

    async def _open(self) -> None:
        """Turn times into offsets, once."""
        if self._cursors is not None:
            return
        wanted = [(TopicPartition(each.topic, each.partition), each.start, each.end) for each in self._spans]
        starts = await resolve(self._cluster, [(partition, start) for partition, start, _ in wanted])
        ends = await resolve(
            self._cluster,
            [(partition, end) for partition, _, end in wanted if end is not None],
            read_committed=self.options.read_committed,
        )
        self._cursors = {
            partition: Cursor(partition, starts[partition], ends.get(partition)) for partition, _, _ in wanted
        }
        for partition, _, end in wanted:
            cursor = self._cursors[partition]
            if end == LATEST and cursor.end is not None and cursor.position > cursor.end:
                raise await out_of_range(self._cluster, partition, cursor.position)
