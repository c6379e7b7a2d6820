"""Batches as Arrow: the records of many batches become one `pyarrow.RecordBatch`, without a Python object per record.

Columns: topic (dictionary), partition, offset, timestamp (ms, UTC), timestamp_type (0: the producer's clock, 1: the
broker's), key, value, headers (list of name and value; null where a record has none). Keys, values and header values
are null where the record's are.

Needs pyarrow and numpy; with numba it is some fifty times faster (`pip install ottla[arrow]` brings all three).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import ARROW_BYTES_MAX, DECOMPRESSED_BATCH_BYTES_MAX
from ottla.records.batch import HEADER_BYTES, BatchHeader
from ottla.records.compress import Codec, decompress
from ottla.records.scan import BATCH_COLUMNS, MALFORMED, scan, scan_headers

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
    ]
)


class WantedBatch(NamedTuple):
    """One whole batch, and the range of wanted offsets: [start, end), where end -1 means to the last record."""

    topic: str
    partition: int
    header: BatchHeader
    data: memoryview
    start: int = 0
    end: int = -1


def record_batch(batches: Sequence[WantedBatch]) -> pa.RecordBatch:
    """Return all wanted records of all batches, in their order.

    Raises ApiError(INVALID_RECORD) on malformed records.
    """
    found = ScannedRecords(batches, [unpacked(batch) for batch in batches])
    places = list(dict.fromkeys(batch.topic for batch in batches))
    topics = np.array([places.index(batch.topic) for batch in batches], dtype=np.int32)
    partitions = np.array([batch.partition for batch in batches], dtype=np.int32)
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(topics[found.batch_of]), pa.array(places, pa.string())),
        pa.array(partitions[found.batch_of]),
        pa.array(found.offsets),
        pa.array(found.times_ms).cast(pa.timestamp("ms", tz="UTC")),
        pa.array(found.timestamp_types()),
        found.keys(),
        found.values(),
        found.headers(),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class ScannedRecords:
    """The wanted records of some batches as columns; columns of variable size become Arrow arrays when they are asked
    for.

    Raises ApiError(INVALID_RECORD) on malformed records.
    """

    def __init__(
        self,
        batches: Sequence[WantedBatch],
        payloads: Sequence[bytes | memoryview],
        *,
        with_keys: bool = True,
        with_values: bool = True,
    ) -> None:
        sizes = [len(payload) for payload in payloads]
        if sum(sizes) > ARROW_BYTES_MAX:
            raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{sum(sizes)} bytes of records are too many for one batch")
        self._batches = batches
        self._data = np.frombuffer(payloads[0] if len(payloads) == 1 else b"".join(payloads), dtype=np.uint8)
        count = sum(batch.header.count for batch in batches)
        if count > len(self._data) or any(batch.header.count < 0 for batch in batches):
            raise _malformed()  # a record takes at least a byte
        self._columns = _Columns(count, len(self._data))
        table = _table(batches, sizes)
        self.rows, self._key_bytes, self._value_bytes, self._header_count = scan(
            self._data, table, with_keys, with_values, *self._columns.arrays
        )
        if self.rows == MALFORMED:
            raise _malformed()

    @property
    def batch_of(self) -> Any:
        """The index of the batch that each row came from."""
        return self._columns.rows_of[: self.rows]

    @property
    def offsets(self) -> Any:
        return self._columns.offsets[: self.rows]

    @property
    def times_ms(self) -> Any:
        return self._columns.times[: self.rows]

    def timestamp_types(self) -> Any:
        """Return 0 (CreateTime) or 1 (LogAppendTime) for each row."""
        kinds = np.array([int(batch.header.is_log_append_time) for batch in self._batches], dtype=np.int32)
        return kinds[self.batch_of]

    def keys(self) -> pa.Array:
        found = self._columns
        return _binary(self.rows, found.key_there, found.key_ends, found.keys[: self._key_bytes])

    def values(self) -> pa.Array:
        found = self._columns
        return _binary(self.rows, found.value_there, found.value_ends, found.values[: self._value_bytes])

    def headers(self, kind: pa.DataType = HEADERS) -> pa.Array:
        """Return the headers of each row as a list of pairs; null for a row without headers."""
        return _headers(self._data, self._columns, self.rows, self._header_count, kind)


class _Columns:
    """Arrays with room for all records; unused pages are never touched, so they cost nothing."""

    def __init__(self, count: int, size_bytes: int) -> None:
        self.offsets = np.empty(count, np.int64)
        self.times = np.empty(count, np.int64)
        self.rows_of = np.empty(count, np.int32)
        self.key_ends = np.zeros(count + 1, np.int32)
        self.key_there = np.empty(count, np.bool_)
        self.keys = np.empty(size_bytes, np.uint8)
        self.value_ends = np.zeros(count + 1, np.int32)
        self.value_there = np.empty(count, np.bool_)
        self.values = np.empty(size_bytes, np.uint8)
        self.header_counts = np.empty(count, np.int32)
        self.headers_at = np.empty(count, np.int64)
        self.record_ends = np.empty(count, np.int64)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays in the order of `scan`'s parameters."""
        return (
            *(self.offsets, self.times, self.rows_of),
            *(self.key_ends, self.key_there, self.keys),
            *(self.value_ends, self.value_there, self.values),
            *(self.header_counts, self.headers_at, self.record_ends),
        )


def unpacked(batch: WantedBatch) -> bytes | memoryview:
    """Return the decompressed records of a batch."""
    body = batch.data[HEADER_BYTES : batch.header.size_bytes]
    if batch.header.codec == Codec.NONE:
        return body
    return decompress(Codec(batch.header.codec), body, DECOMPRESSED_BATCH_BYTES_MAX)


def _table(batches: Sequence[WantedBatch], sizes: Sequence[int]) -> Any:
    rows: list[tuple[int, ...]] = []
    begin = 0
    for batch, size in zip(batches, sizes, strict=True):
        header = batch.header
        end = begin + size
        fixed_time = header.max_timestamp if header.is_log_append_time else -1
        rows.append(
            (begin, end, header.count, header.base_offset, header.base_timestamp, fixed_time, batch.start, batch.end)
        )
        begin = end
    return np.array(rows, np.int64).reshape(-1, BATCH_COLUMNS)


def _binary(rows: int, there: Any, ends: Any, data: Any) -> pa.Array:
    return pa.Array.from_buffers(
        pa.binary(), rows, [_validity(there[:rows]), pa.py_buffer(ends[: rows + 1]), pa.py_buffer(data)]
    )


def _validity(there: Any) -> pa.Buffer | None:
    return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def _headers(data: Any, columns: _Columns, rows: int, total: int, kind: pa.DataType) -> pa.Array:
    if total == 0:
        return pa.nulls(rows, kind)
    if total > len(data):
        raise _malformed()
    counts = columns.header_counts[:rows]
    name_ends, value_ends = np.zeros(total + 1, np.int32), np.zeros(total + 1, np.int32)
    names, values = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    there = np.empty(total, np.bool_)
    found, name_bytes, value_bytes = scan_headers(
        data, counts, columns.headers_at, columns.record_ends, name_ends, names, value_ends, there, values
    )
    if found == MALFORMED:
        raise _malformed()
    buffers = [None, pa.py_buffer(name_ends), pa.py_buffer(names[:name_bytes])]
    raw = pa.Array.from_buffers(pa.binary(), total, buffers)
    try:
        text = raw.cast(pa.string())  # the cast checks that the names are UTF-8
    except pa.ArrowInvalid:  # replace invalid bytes, as Java does
        text = pa.array([each.decode("utf-8", "replace") for each in raw.to_pylist()], pa.string())
    pairs = pa.StructArray.from_arrays(
        [text, _binary(total, there, value_ends, values[:value_bytes])], fields=list(kind.value_type)
    )
    begins = np.zeros(rows + 1, np.int32)
    np.cumsum(counts, out=begins[1:])
    return pa.ListArray.from_arrays(pa.array(begins), pairs, type=kind, mask=pa.array(counts == 0))


def _malformed() -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, "A record batch holds malformed records")
