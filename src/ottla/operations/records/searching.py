"""A search through records: spans of partitions are read batch by batch, and looked at in worker threads.

Rules:
- Only one portion of batches is in memory; records that were found are handed out, their number is bounded.
- Between portions the progress is told. Who does not ask for the next step ends the search.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum

from ottla.client.cluster import Cluster
from ottla.client.consumer.ranges import ConsumedRecord, RangeReader, RawBatch, Span, decode_batch
from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.operations.failures import message_of
from ottla.operations.records.contents import ReadContent, RecordReader, json_line
from ottla.operations.records.json_paths import JsonCondition
from ottla.operations.records.reading import read_options
from ottla.operations.threads import BlockingWork, in_thread


class SearchPlace(StrEnum):
    """Where a search looks."""

    anywhere = "anywhere"
    key = "key"
    value = "value"
    header = "header"
    path = "path"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched: a text (of any case) in a part of the record, or a condition on the JSON value of its value."""

    place: SearchPlace
    text: str = ""
    condition: JsonCondition | None = None

    def finds(self, record: ConsumedRecord, reader: RecordReader) -> bool:
        """Whether a record is what is searched."""
        wanted = self.text.lower()
        match self.place:
            case SearchPlace.path:
                assert self.condition is not None, "a search by path has a condition"
                read = reader.value(record)
                return read.is_structured and self.condition.matches(read.value)
            case SearchPlace.key:
                return _has(record.key, reader.key, record, wanted, reader.is_plain)
            case SearchPlace.value:
                return _has(record.value, reader.value, record, wanted, reader.is_plain)
            case SearchPlace.header:
                return _in_headers(record, wanted)
        return (
            _has(record.key, reader.key, record, wanted, reader.is_plain)
            or _has(record.value, reader.value, record, wanted, reader.is_plain)
            or _in_headers(record, wanted)
        )


@dataclass(frozen=True, slots=True)
class SearchStep:
    """What one step of a search has found, and how far it is: records looked at, and offsets passed of all."""

    found: list[ConsumedRecord]
    looked_at: int
    passed: int
    total: int
    unreadable: int = 0
    failure: str = ""
    is_over: bool = False


async def search(
    cluster: Cluster, spans: Sequence[Span], wanted: Wanted, reader: RecordReader, *, committed: bool = False
) -> AsyncGenerator[SearchStep, None]:
    """Search spans with plain offsets as starts and ends; the last step says that it is over."""
    portions = _Portions(wanted, reader)
    total = sum(_offset(span.end) - _offset(span.start) for span in spans)
    starts = {(span.topic, span.partition): _offset(span.start) for span in spans}
    failure, passed = "", 0
    if total:
        async with RangeReader(cluster, spans, read_options(committed=committed)) as ranges:
            try:
                async with aclosing(_gathered(ranges)) as gathered:
                    async for batches in gathered:
                        found = await in_thread(BlockingWork.decoding, portions.look, batches)
                        passed = sum(at - starts[partition] for partition, at in ranges.positions().items())
                        yield SearchStep(found, portions.looked_at, min(passed, total), total, portions.unreadable)
            except (ApiError, ClientError) as error:
                failure = message_of(error)
            passed = sum(at - starts[partition] for partition, at in ranges.positions().items())
    yield SearchStep([], portions.looked_at, min(passed, total), total, portions.unreadable, failure, is_over=True)


async def _gathered(ranges: RangeReader) -> AsyncGenerator[list[RawBatch], None]:
    """Batches in portions that are worth a worker's turn."""
    gathered: list[RawBatch] = []
    size_bytes = 0
    async with aclosing(ranges.batches()) as batches:
        async for raw in batches:
            gathered.append(raw)
            size_bytes += len(raw.data)
            if size_bytes >= limits.CONSOLE_SEARCH_PORTION_BYTES:
                yield gathered
                gathered, size_bytes = [], 0
    if gathered:
        yield gathered


class _Portions:
    """Looks at portions of batches, in a worker thread, one after the other."""

    def __init__(self, wanted: Wanted, reader: RecordReader) -> None:
        self._wanted = wanted
        self._reader = reader
        self.looked_at = 0
        self.unreadable = 0

    def look(self, batches: Sequence[RawBatch]) -> list[ConsumedRecord]:
        found: list[ConsumedRecord] = []
        for raw in batches:
            try:
                for record in decode_batch(raw):
                    self.looked_at += 1
                    if self._wanted.finds(record, self._reader) and len(found) < limits.CONSOLE_HITS_MAX:
                        found.append(record)
            except (ApiError, RecursionError):  # a damaged batch; a value that is nested too deeply
                self.unreadable += 1
        return found


def _has(
    data: bytes | None,
    read: Callable[[ConsumedRecord], ReadContent],
    record: ConsumedRecord,
    wanted: str,
    is_plain: bool,
) -> bool:
    """Whether contents have a text in them, as they are or as they are read."""
    if data is None:
        return False
    if wanted.isascii() and wanted.encode() in data.lower():
        return True
    if is_plain and data.isascii() and data[:1] not in (b"{", b"["):
        return False  # it would be read as what it is
    content = read(record)
    text = json_line(content.value) if content.is_structured else content.text
    return wanted in text.lower()


def _in_headers(record: ConsumedRecord, wanted: str) -> bool:
    """Whether a header has a text in its name, its value, or `name=value`."""
    for name, value in record.headers:
        if wanted in f"{name}={'' if value is None else value.decode('utf-8', 'replace')}".lower():
            return True
    return False


def _offset(place: object) -> int:
    assert isinstance(place, int), "a search has offsets"
    return place
