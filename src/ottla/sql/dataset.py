"""A topic as an Arrow data set. Each scan by DuckDB reads the topic again, and only the parts that its filter needs.

Rules:
- Every scan reads up to the end that the topic had when the query began, so that a query sees one state of the log.
- Columns that the query does not use are not decoded.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.offsets import Time, list_offsets
from ottla.client.consumer.ranges import ReadOptions, Span
from ottla.model.ids import TopicPartition
from ottla.records.arrow import SCHEMA
from ottla.sql.bounds import bounds
from ottla.sql.payloads import PayloadColumns


class Extent(NamedTuple):
    """The largest range that is read of each partition: [start, end)."""

    partitions: Mapping[int, tuple[int, int]]


class TopicDataset(ds.Dataset):  # type: ignore[misc]
    """A data set for DuckDB, which uses its `schema`, and a `scanner` per scan."""

    def __init__(
        self, client: Blocking, topic: str, extent: Extent, keys: PayloadColumns, values: PayloadColumns
    ) -> None:
        self._client = client
        self._topic = topic
        self._extent = extent
        self._payloads = {"key": keys, "value": values}
        fields = [
            field.with_type(self._payloads[field.name].type) if field.name in self._payloads else field
            for field in SCHEMA
        ]
        self._schema = pa.schema([_plain(field) for field in fields])
        self.rows_read = 0

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> ds.Scanner:
        """A new scan."""
        wanted = list(self._schema.names) if columns is None else list(columns)
        return ds.Scanner.from_batches(
            self._batches(filter, wanted), schema=self._schema, columns=wanted, filter=filter, **options
        )

    def _batches(self, condition: Any, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        spans = self._spans(condition)
        if not spans:
            return
        # A filter may use columns that are not wanted; they are found in its text.
        needed = {name for name in self._payloads if name in wanted or name in str(condition)}
        reader = self._client.ranges(spans, ReadOptions(read_committed=True))
        for batch in self._client.iterate(reader.arrow()):
            self.rows_read += batch.num_rows
            yield self._decoded(batch, needed)

    def _decoded(self, batch: pa.RecordBatch, needed: set[str]) -> pa.RecordBatch:
        columns = []
        for field, column in zip(self._schema, batch.columns, strict=True):
            payloads = self._payloads.get(field.name)
            if payloads is not None:
                column = payloads.decode(column) if field.name in needed else pa.nulls(batch.num_rows, field.type)
            elif pa.types.is_dictionary(column.type):
                column = column.cast(pa.string())
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _spans(self, condition: Any) -> list[Span]:
        found = {
            TopicPartition(self._topic, index): within
            for index, (start, end) in sorted(self._extent.partitions.items())
            if (within := bounds(self._schema, condition, index, start, end)) is not None
        }
        times = {part: Time(within.since_ms) for part, within in found.items() if within.since_ms is not None}
        # The first offset with a timestamp so late: all records before it have earlier ones. -1: there is none.
        late = self._client.run(list_offsets(self._client.cluster, times)) if times else {}
        spans = []
        for part, within in found.items():
            first = late[part].offset if part in late else within.start
            if 0 <= first < within.end:
                spans.append(Span(*part, max(within.start, first), within.end))
        return spans


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
