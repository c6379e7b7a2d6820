"""Fetched batches as rows in Spark's columns, without a Python object per record.

Rules:
- Columns and types are those of Spark's Kafka connector; only the wanted ones are made. `shape` says which can be null.
- Record batches are gathered until there are enough rows, or enough decompressed bytes, for one Arrow batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ottla.client.consumer.fetching import RawBatch
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import SPARK_BATCH_BYTES_MAX
from ottla.records.arrow import ScannedRecords, WantedBatch, unpacked
from ottla.spark.read.shape import NULLABLE

HEADERS = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]), nullable=True)
)
TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}
_TIME_MS_MAX = (2**63 - 1) // 1000


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of rows with these columns."""
    return pa.schema([pa.field(name, TYPES[name], name in NULLABLE) for name in columns])


class Rows:
    """Makes Arrow batches of the record batches of one partition."""

    def __init__(self, topic: str, partition: int, columns: Sequence[str], rows_min: int) -> None:
        self._topic = topic
        self._partition = partition
        self._columns = tuple(columns)
        self._schema = schema_of(columns)
        self._rows_min = rows_min
        self._batches: list[WantedBatch] = []
        self._payloads: list[bytes | memoryview] = []
        self._rows = 0
        self._size_bytes = 0
        self._constant: dict[tuple[str, str | int], Any] = {}  # columns of one repeated value; slices of them are free

    def add(self, found: Iterable[RawBatch]) -> Iterator[pa.RecordBatch]:
        """Take record batches; yield an Arrow batch whenever there is enough for one."""
        for raw in found:
            end = -1 if raw.end is None else raw.end
            wanted = WantedBatch(self._topic, self._partition, raw.header, raw.data, raw.start, end)
            try:
                payload = unpacked(wanted)
            except ApiError as error:
                raise self._placed(error, [wanted]) from error
            self._batches.append(wanted)
            self._payloads.append(payload)
            self._rows += raw.header.count
            self._size_bytes += len(payload)
            if self._rows >= self._rows_min or self._size_bytes >= SPARK_BATCH_BYTES_MAX:
                yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield an Arrow batch of what is left, if there is anything."""
        if self._batches:
            made = self._make()
            self._batches, self._payloads, self._rows, self._size_bytes = [], [], 0, 0
            if made.num_rows:
                yield made

    def _make(self) -> pa.RecordBatch:
        columns = self._columns
        try:
            found = ScannedRecords(
                self._batches, self._payloads, with_keys="key" in columns, with_values="value" in columns
            )
        except ApiError as error:
            raise self._placed(error, self._batches) from error
        return pa.RecordBatch.from_arrays([self._column(name, found) for name in columns], schema=self._schema)

    def _placed(self, error: ApiError, batches: Sequence[WantedBatch]) -> ApiError:
        """The error with the partition and offsets of the batches that cannot be read."""
        first, last = batches[0].header.base_offset, batches[-1].header.next_offset - 1
        return ApiError(error.code, f"{self._topic}-{self._partition}, offsets {first} to {last}: {error.text}")

    def _column(self, name: str, found: ScannedRecords) -> Any:
        match name:
            case "key":
                return found.keys()
            case "value":
                return found.values()
            case "topic":
                return self._repeated(name, self._topic, found.rows)
            case "partition":
                return self._repeated(name, self._partition, found.rows)
            case "offset":
                return pa.array(found.offsets)
            case "timestamp":
                return self._times(found)
            case "timestampType":
                kinds = [batch.header.is_log_append_time for batch in self._batches]
                if all(kinds) or not any(kinds):
                    return self._repeated(name, int(kinds[0]), found.rows)
                return pa.array(found.timestamp_types())
            case _:
                return found.headers(HEADERS)

    def _repeated(self, name: str, value: str | int, rows: int) -> Any:
        made = self._constant.get((name, value))
        if made is None or len(made) < rows:
            made = self._constant[name, value] = pa.repeat(pa.scalar(value, TYPES[name]), rows + rows // 8)
        return made.slice(0, rows)

    def _times(self, found: ScannedRecords) -> Any:
        times_ms = found.times_ms
        if found.rows and (times_ms.max() > _TIME_MS_MAX or times_ms.min() < -_TIME_MS_MAX):
            odd = int(((times_ms > _TIME_MS_MAX) | (times_ms < -_TIME_MS_MAX)).argmax())
            where = f"the record at offset {found.offsets[odd]} of {self._topic}-{self._partition}"
            raise ApiError(ErrorCode.INVALID_TIMESTAMP, f"{where} has a timestamp that Spark cannot hold")
        return pa.array(times_ms * 1000).view(TYPES["timestamp"])
