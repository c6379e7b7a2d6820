"""Reading partitions without a group: from an offset or a time, up to an end or for ever.

Rules:
- The next Fetch is in flight while the records of the last one are handed out (`consumer.fetching`).
- Deliver, then advance: `positions` are behind the records that were handed out, and reading again, after a failure or
  a break, begins there.
- A span that fails does not affect the others: they are read to their end, and then the failure is raised. (Spans that
  are followed for ever have no end: the failure is raised when only they are left.)
- A reader has one span of a partition: its positions are by partition. Two spans of one partition take two readers.
- Records before the wanted start and from the wanted end on are dropped.
- An offset that the log no longer has (or does not have yet) is `OffsetOutOfRange`, never a silent jump. So is an end
  beyond the log's end: raised when all records up to there were handed out, and none has come for `max_wait_ms`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.checks import checked_options, checked_partition, kind_of
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.consumer.arrow import LINGER_MS, ROWS_MIN, Convert, Gathering, converted, converter
from ottla.client.consumer.fetched import ConsumedRecord, FetchCursor, Fetched, RawBatch, ReadOptions, decode_batch
from ottla.client.consumer.fetching import ConsumerFetcher
from ottla.client.consumer.offsets import EARLIEST, LATEST, Time, bounds_each, out_of_range, resolve_each
from ottla.client.errors import ClientError, OffsetOutOfRange
from ottla.client.options import ClientOptions, GivenSecurity
from ottla.client.outcomes import Outcomes
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ConsumedRecord", "RangeReader", "RawBatch", "ReadOptions", "Span", "decode_batch"]


class Span(NamedTuple):
    """A range of offsets of one partition: [start, end). An end of None means: follow the partition for ever.

    A `Time` is turned into an offset when reading begins; so `end=LATEST` is the end at that moment.
    """

    topic: str
    partition: int
    start: int | Time = EARLIEST
    end: int | Time | None = LATEST


class RangeReader(Closing):
    """Reads spans: `async with RangeReader(cluster, [Span("topic", 0)]) as reader: async for record in reader: ...`."""

    def __init__(
        self,
        cluster: Cluster | str | Sequence[str] | ClientOptions,
        spans: Iterable[Span],
        options: ReadOptions | None = None,
        *,
        security: GivenSecurity = None,
    ) -> None:
        self.options = checked_options(options, ReadOptions)
        self._spans = _by_partition(spans)
        self._owns_cluster = not isinstance(cluster, Cluster)
        self._cluster = Cluster.of(cluster, security)
        self._ends: dict[TopicPartition, int | None] = {}  # of spans whose times were turned into offsets
        self._positions: dict[TopicPartition, int] = {}
        self._failed: dict[TopicPartition, Exception] = {}
        self._handed: ConsumedRecord | None = None  # the last record handed out, of a batch that is not finished
        self._fetcher = ConsumerFetcher(self._cluster, self.options)

    async def close(self) -> None:
        """Stop fetching, and close the connections unless they belong to a `Cluster` that was passed in."""
        await self._fetcher.close()
        if self._owns_cluster:
            await self._cluster.close()

    def positions(self) -> dict[TopicPartition, int]:
        """Return, per partition, the offset behind the records that were handed out."""
        found = dict(self._positions)
        if self._handed is not None:
            found[TopicPartition(self._handed.topic, self._handed.partition)] = self._handed.offset + 1
        return found

    def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        return self.records()

    async def records(self) -> AsyncGenerator[ConsumedRecord, None]:
        """Yield the records of all spans; in order within a partition."""
        async with aclosing(self._answers()) as answers:
            async for found in answers:
                for fetched in found:
                    for raw in self._wanted(fetched.batches):
                        try:
                            records = list(decode_batch(raw))
                        except Exception as error:
                            self._failed[raw.partition] = error
                            break
                        for record in records:
                            self._handed = record
                            yield record
                        self._handed = None
                        self._positions[raw.partition] = raw.header.next_offset
                    self._pass(fetched)
        self._tell()

    async def batches(self) -> AsyncGenerator[RawBatch, None]:
        """Yield the batches of all spans, undecoded; the first and the last may reach beyond the span."""
        async with aclosing(self._answers()) as answers:
            async for found in answers:
                for fetched in found:
                    for raw in fetched.batches:
                        self._positions[raw.partition] = raw.header.next_offset
                        yield raw
                    self._pass(fetched)
        self._tell()

    async def arrow(
        self, *, rows_min: int = ROWS_MIN, linger_ms: float = LINGER_MS
    ) -> "AsyncGenerator[pa.RecordBatch, None]":
        """Yield the records of all spans as `pyarrow.RecordBatch`es of about `rows_min` rows, fewer if those do not
        come in `linger_ms`.
        """
        convert = converter()
        gathering = Gathering(rows_min)
        async with aclosing(self._answers(linger_ms / 1000)) as answers:
            async for found in answers:
                for batches in gathering.fill(raw for fetched in found for raw in fetched.batches):
                    for columns in self._columns(convert, batches):
                        yield columns
                if not found:
                    for columns in self._columns(convert, gathering.take()):
                        yield columns
        for columns in self._columns(convert, gathering.take()):
            yield columns
        self._tell()

    def _columns(self, convert: Convert, batches: Sequence[RawBatch]) -> "Iterator[pa.RecordBatch]":
        """Convert all batches together, or those that can be converted."""
        while batches := self._wanted(batches):
            columns, now, failed = converted(convert, list(batches))
            for raw in now:
                self._positions[raw.partition] = raw.header.next_offset
            self._failed |= failed
            if columns is not None:
                yield columns
            batches = batches[len(now) :] if not failed else ()

    def _wanted(self, batches: Sequence[RawBatch]) -> Sequence[RawBatch]:
        """Return the batches without those of partitions that have failed."""
        if not self._failed:
            return batches
        return [raw for raw in batches if raw.partition not in self._failed]

    def _pass(self, fetched: Fetched) -> None:
        """Move the position behind a result that was handed out entirely, including batches skipped at its end."""
        partition = fetched.cursor.partition
        if partition not in self._failed:
            self._positions[partition] = fetched.next_offset

    # --- results of fetches -------------------------------------------------------------------------------------

    async def _answers(self, wait_s: float | None = None) -> AsyncGenerator[list[Fetched], None]:
        """Yield the results of fetches; an empty list whenever none has come for `wait_s`."""
        self._settle()
        await self._open()
        cursors = [FetchCursor(each, self._positions[each], end) for each, end in self._ends.items()]
        try:
            while self._start(cursors):
                await self._fetcher.wait(wait_s)
                found: list[Fetched] = []
                for fetched in self._fetcher.collect():
                    error = fetched.error or await self._beyond_end(fetched)
                    if error is None:
                        found.append(fetched)
                    else:
                        self._failed[fetched.cursor.partition] = error
                if found:
                    self._start(cursors)  # the broker works while the caller does
                yield found
        finally:
            await self._fetcher.close()

    async def _beyond_end(self, fetched: Fetched) -> Exception | None:
        """Return the error for an end that the log does not reach, once there is nothing left before it. A new leader
        may not know the high watermark at first, therefore it is asked for the end before an error is returned.
        """
        cursor = fetched.cursor
        if (
            fetched.batches
            or cursor.end is None
            or not (0 <= fetched.high_watermark <= cursor.position and fetched.high_watermark < cursor.end)
        ):
            return None
        try:
            bounds = (await bounds_each(self._cluster, [cursor.partition])).all()[cursor.partition]
        except (ApiError, ClientError) as error:
            return error
        if cursor.end <= bounds.end:
            return None
        return OffsetOutOfRange(cursor.partition, cursor.end, bounds.start, bounds.end)

    def _tell(self) -> None:
        """Raise the failures, after everything that could be read was handed out."""
        Outcomes(failed=self._failed).all()

    def _settle(self) -> None:
        """Prepare another reading, which begins where the last one ended."""
        self._positions, self._handed, self._failed = self.positions(), None, {}

    def _start(self, cursors: Iterable[FetchCursor]) -> bool:
        """Fetch the unfinished spans; return False if only endless ones are left and a failure has to be raised."""
        left = [each for each in cursors if not each.done and each.partition not in self._failed]
        if self._failed and all(each.end is None for each in left):
            return False
        self._fetcher.start(left)
        return bool(self._fetcher)

    async def _open(self) -> None:
        """Turn the times of spans into offsets, where that was not done yet."""
        new = {partition: span for partition, span in self._spans.items() if partition not in self._ends}
        starts = await resolve_each(self._cluster, [(partition, span.start) for partition, span in new.items()])
        ends = await resolve_each(
            self._cluster,
            [(partition, span.end) for partition, span in new.items() if span.end is not None],
            read_committed=self.options.read_committed,
        )
        self._failed |= starts.failed | ends.failed
        for partition, span in new.items():
            if partition in self._failed:
                continue
            start, end = starts.found[partition], ends.found.get(partition)
            if span.end == LATEST and end is not None and start > end:
                try:
                    raise await out_of_range(self._cluster, partition, start)
                except (ApiError, ClientError) as error:
                    self._failed[partition] = error
            else:
                self._positions[partition], self._ends[partition] = start, end


def _by_partition(spans: Iterable[Span]) -> dict[TopicPartition, Span]:
    """Return the spans by partition. Raise if they are invalid."""
    found: dict[TopicPartition, Span] = {}
    for span in spans:
        partition = TopicPartition(_checked(span).topic, span.partition)
        if partition in found:
            raise ValueError(f"a reader reads one span of a partition, not two of {partition}: make a reader for each")
        found[partition] = span
    return found


def _checked(span: Span) -> Span:
    """Return the span. Raise if it is invalid."""
    if not isinstance(span, Span):
        raise TypeError(f"a RangeReader takes a list of Span, not of {kind_of(span)}")
    checked_partition((span.topic, span.partition))
    for name, place in (("start", span.start), ("end", span.end)):
        if isinstance(place, Time) or (name == "end" and place is None):
            continue
        if not isinstance(place, int):
            raise TypeError(f"{name} must be an offset or a Time (in milliseconds), not {kind_of(place)}")
        if place < 0:
            raise ValueError(f"{name} must be an offset, 0 or more, not {place}: EARLIEST and LATEST name the ends")
        if place > limits.INT64_MAX:
            raise ValueError(f"{name} must be an offset, at most {limits.INT64_MAX}, not {place}")
    if isinstance(span.start, int) and isinstance(span.end, int) and span.start > span.end:
        raise ValueError(f"the span of {span.topic}-{span.partition} starts at {span.start}, behind its end {span.end}")
    return span
