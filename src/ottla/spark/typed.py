"""Typed columns of the reader: keys and values decoded by their schemas, as the options say.

`typed_columns(options, topics)` is called once, on the driver: it asks the registry for the schemas to read with, so
the Spark schema is known and stays the same for all batches. What it returns is pickled to the executors, which call
`apply` on every batch of raw columns; they ask the registry for the schemas that records name, once per id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

# name → what it does; values are texts, names are case-insensitive as all of Spark's.
TYPED_OPTIONS: Mapping[str, str] = {}


class Applied(NamedTuple):
    """`batch` has the typed columns; `dead` the raw rows for the dead-letter topic (with `on.bad=dlq`), if any:
    key, value, topic, partition, offset, timestamp as they came, and `reason`."""

    batch: pa.RecordBatch
    dead: pa.RecordBatch | None


class TypedColumns:
    """Decodes columns `key` and/or `value` of raw batches. Picklable."""

    @property
    def needs(self) -> frozenset[str]:
        """The raw columns that must be in every batch given to `apply`, whatever columns are chosen."""
        raise NotImplementedError

    def schema(self, raw: pa.Schema) -> pa.Schema:
        """The schema of what `apply` makes of batches of `raw`: raw has Spark's columns (key, value: binary, ...)."""
        raise NotImplementedError

    def apply(self, batch: pa.RecordBatch) -> Applied:
        """Decode. Raises BadRecord (with topic, partition, offset and reason) with `on.bad=fail`."""
        raise NotImplementedError


def typed_columns(options: Mapping[str, str], topics: Sequence[str]) -> TypedColumns | None:
    """As the options say; None if neither `key.format` nor `value.format` is set. Raises ValueError for options that
    do not go together, and what `client.registry` raises. `topics`: those subscribed to by name (none: a pattern)."""
    raise NotImplementedError
