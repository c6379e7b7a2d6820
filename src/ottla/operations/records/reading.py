"""Pages of records: so many of them from a place in some partitions, forwards or backwards, merged by their times.

Rules:
- A page is read in windows of offsets, which grow where there are gaps (compaction, control records). Backwards means:
  a window before the place is read forwards, and its last records are kept.
- The number of records, their bytes and the time are bounded. A page that ends early says so, and its places are good
  to go on from.
- A partition that fails does not affect the others.
- Batches are decoded in worker threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeAlias

from ottla.client.cluster import Cluster
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.consumer.ranges import ConsumedRecord, RangeReader, RawBatch, ReadOptions, Span, decode_batch
from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.operations.failures import message_of
from ottla.operations.threads import BlockingWork, in_thread

Place: TypeAlias = dict[int, int]  # an offset in each partition

_WINDOW_MIN = 8
_WINDOW_MAX = 100_000
_GROWTH = 4
_DECODED_TOGETHER_BYTES = limits.MIB
_OVERHEAD_BYTES = 100  # of one record in memory


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Records in the order in which they were read; they lie between the places `low` and `high`. `problems` says for
    which partitions reading failed, and why; `is_cut`: it ended early, because of its size or the time.
    """

    records: list[ConsumedRecord]
    low: Place
    high: Place
    problems: dict[int, str] = field(default_factory=dict)
    is_cut: bool = False


def read_options(*, committed: bool) -> ReadOptions:
    """The options of fetches that hold little memory."""
    return ReadOptions(
        max_bytes=limits.CONSOLE_FETCH_BYTES,
        max_partition_bytes=limits.CONSOLE_FETCH_PARTITION_BYTES,
        read_committed=committed,
    )


async def read_page(
    cluster: Cluster,
    topic: str,
    place: Mapping[int, int],
    bounds: Mapping[int, PartitionBounds],
    *,
    forward: bool,
    count: int,
    committed: bool = False,
) -> RecordPage:
    """Read so many records from a place on, within the bounds; a place beyond them is moved into them."""
    begun = {index: min(max(place.get(index, each.end), each.start), each.end) for index, each in bounds.items()}
    window = min(max(-(-count // max(len(bounds), 1)), _WINDOW_MIN), count)
    sources = [
        _Source(index, begun[index], bounds[index].end if forward else bounds[index].start, forward, window)
        for index in sorted(bounds)
    ]
    reading = _PageReading(cluster, topic, sources, forward, count, committed)
    await reading.run()
    reached = {each.index: each.place for each in sources}
    low, high = (begun, reached) if forward else (reached, begun)
    return RecordPage(reading.taken, low, high, reading.problems, reading.is_cut)


class _Source:
    """One partition: the records that were read of it and not taken yet, in reading order."""

    def __init__(self, index: int, position: int, limit: int, forward: bool, window: int) -> None:
        self.index = index
        self.reached = position  # up to where it was read
        self.limit = limit
        self.forward = forward
        self.window = window
        self.waiting: deque[ConsumedRecord] = deque()
        self.is_over = position == limit

    @property
    def place(self) -> int:
        """Where the next page begins: before the first record that was not taken."""
        if not self.waiting:
            return self.reached
        return self.waiting[0].offset if self.forward else self.waiting[0].offset + 1

    @property
    def next_window(self) -> tuple[int, int]:
        if self.forward:
            return self.reached, min(self.reached + self.window, self.limit)
        return max(self.reached - self.window, self.limit), self.reached

    def take_over(self, read: Sequence[ConsumedRecord], reached: int) -> None:
        """Take over a window, whose records are in the order of their offsets."""
        self.waiting.extend(read if self.forward else reversed(read))
        self.reached = reached
        self.is_over = reached == self.limit
        self.window = min(self.window * (2 if read else _GROWTH), _WINDOW_MAX)


class _PageReading:
    """Fills the sources window by window, and merges them."""

    def __init__(
        self, cluster: Cluster, topic: str, sources: list[_Source], forward: bool, count: int, committed: bool
    ) -> None:
        self.taken: list[ConsumedRecord] = []
        self.problems: dict[int, str] = {}
        self.is_cut = False
        self._cluster = cluster
        self._topic = topic
        self._sources = sources
        self._forward = forward
        self._count = count
        self._options = read_options(committed=committed)
        self._room_bytes = limits.CONSOLE_RECORDS_BYTES_MAX

    async def run(self) -> None:
        try:
            async with asyncio.timeout(limits.CONSOLE_READ_S):
                while len(self.taken) < self._count and not self.is_cut:
                    empty = [each for each in self._sources if not each.waiting and not each.is_over]
                    if empty:
                        await self._fill(empty)
                    elif not self._take():
                        return
        except TimeoutError:
            self.is_cut = True
        while self.is_cut and len(self.taken) < self._count and self._take():
            pass

    def _take(self) -> bool:
        """Take the next record of all; False if there is none."""
        heads = [each for each in self._sources if each.waiting]
        if not heads:
            return False
        if self._forward:
            first = min(heads, key=lambda each: (each.waiting[0].timestamp, each.index))
        else:
            first = max(heads, key=lambda each: (each.waiting[0].timestamp, -each.index))
        self.taken.append(first.waiting.popleft())
        return True

    async def _fill(self, sources: list[_Source]) -> None:
        """Read the next window of these sources."""
        wanted = {each.index: each.next_window for each in sources}
        kept = {each.index: _Kept(self._forward, self._count, self._room_bytes // len(sources)) for each in sources}
        spans = [Span(self._topic, index, begin, end) for index, (begin, end) in wanted.items()]
        failed = ""
        async with RangeReader(self._cluster, spans, self._options) as reader:
            try:
                async with aclosing(reader.batches()) as batches:
                    gathered: list[RawBatch] = []
                    size_bytes = 0
                    async for raw in batches:
                        gathered.append(raw)
                        size_bytes += len(raw.data)
                        if size_bytes >= _DECODED_TOGETHER_BYTES:
                            await in_thread(BlockingWork.decoding, self._decode, gathered, kept)
                            gathered, size_bytes = [], 0
                            if self._forward and all(each.is_full for each in kept.values()):
                                break
                    await in_thread(BlockingWork.decoding, self._decode, gathered, kept)
            except (ApiError, ClientError) as error:
                failed = message_of(error)
            positions = reader.positions()
        for source in sources:
            self._settle(source, kept[source.index], positions, wanted[source.index], failed)

    def _settle(
        self,
        source: _Source,
        kept: _Kept,
        positions: Mapping[TopicPartition, int],
        window: tuple[int, int],
        failed: str,
    ) -> None:
        begin, end = window
        read_to = positions.get(TopicPartition(self._topic, source.index), begin)
        wrong = kept.failure or (failed if read_to < end and not kept.is_full else "")
        if wrong:
            self.problems[source.index] = wrong
            source.is_over = True
            return
        records = list(kept.records)
        if self._forward:
            reached = records[-1].offset + 1 if kept.is_full else min(read_to, end)
        else:
            reached = records[0].offset if kept.has_dropped else begin
        source.take_over(records, reached)
        self._room_bytes -= kept.size_bytes
        self.is_cut = self.is_cut or self._room_bytes <= 0

    def _decode(self, batches: Sequence[RawBatch], kept: Mapping[int, _Kept]) -> None:
        for raw in batches:
            into = kept[raw.partition.partition]
            if into.failure or (into.is_full and self._forward):
                continue
            try:
                for record in decode_batch(raw):
                    into.add(record)
            except ApiError as error:  # a damaged batch
                into.failure = f"a batch cannot be read: {message_of(error)}"


class _Kept:
    """The records of one window that are kept: the first ones forwards, the last ones backwards."""

    def __init__(self, forward: bool, count: int, room_bytes: int) -> None:
        self.records: deque[ConsumedRecord] = deque()
        self.size_bytes = 0
        self.failure = ""
        self.has_dropped = False
        self.is_full = False
        self._forward = forward
        self._count = count
        self._room_bytes = room_bytes

    def add(self, record: ConsumedRecord) -> None:
        if self.is_full:
            return
        self.records.append(record)
        self.size_bytes += record_bytes(record)
        is_much = len(self.records) >= self._count or self.size_bytes >= self._room_bytes
        if self._forward:
            self.is_full = is_much
            return
        while len(self.records) > 1 and (len(self.records) > self._count or self.size_bytes > self._room_bytes):
            self.size_bytes -= record_bytes(self.records.popleft())
            self.has_dropped = True


def record_bytes(record: ConsumedRecord) -> int:
    """About how much memory a record takes."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return _OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"") + headers
