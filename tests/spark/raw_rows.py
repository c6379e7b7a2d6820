"""Raw batches as the source hands them to typed columns."""

from typing import Any

import pyarrow as pa

from ottla.spark.read.rows import TYPES


def rows(values: list[bytes | None], keys: list[bytes | None] | None = None, headers: Any = None) -> pa.RecordBatch:
    count = len(values)
    columns = {
        "key": keys or [None] * count,
        "value": values,
        "topic": ["orders"] * count,
        "partition": [1] * count,
        "offset": list(range(100, 100 + count)),
        "timestamp": [0] * count,
        "headers": headers or [None] * count,
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(column, TYPES[name]) for name, column in columns.items()],
        schema=pa.schema([(name, TYPES[name]) for name in columns]),
    )
