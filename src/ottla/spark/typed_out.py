"""Typed columns of the writer: keys and values encoded by their schemas, which are found or registered.

`typed_output(options, schema, topic)` is called once, on the driver (it registers); what it returns is pickled to the
executors, which call `apply` on every batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa


class TypedOutput:
    """Encodes typed columns to `key` and/or `value`. Picklable."""

    def schema(self) -> pa.Schema:
        """What `apply` gives: `key` and `value` binary, other columns as they were."""
        raise NotImplementedError

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Encode. Raises ValueError for rows that the schema cannot hold."""
        raise NotImplementedError


def typed_output(options: Mapping[str, str], schema: pa.Schema, topic: str | None) -> TypedOutput | None:
    """As the options say; None if neither `key.format` nor `value.format` is set.

    `schema` is that of the DataFrame in Arrow. The value is the column `value`; without one, all columns that the
    writer does not use itself (key, headers, topic, partition, timestamp) are the fields of the value. `topic`: the
    one written to, if the options name it (it makes the subjects' default names).
    """
    raise NotImplementedError
