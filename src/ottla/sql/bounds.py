"""Derive from a filter which partitions, offsets and timestamps need not be read.

DuckDB passes its filters to Arrow as expressions, which Python cannot take apart; but Arrow can tell whether an
expression may be true for rows that satisfy another condition (that is how it skips files of a data set). So bounds are
found by bisection with such questions: exact for any mixture of AND, OR, IN and BETWEEN that Arrow understands;
otherwise nothing is left out. The filter itself is still applied to the rows that are read.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

_FORMAT = ds.IpcFileFormat()
_NOWHERE = fs.LocalFileSystem()
_TIME = pa.timestamp("us", tz="UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The year 10000, the end of the range of Python's datetime.
_TIME_MS_END = 253_402_300_800_000


class TableBounds(NamedTuple):
    """[start, end) of one partition, and the lowest timestamp that matters (None: any)."""

    start: int
    end: int
    since_ms: int | None


def may_hold(schema: pa.Schema, condition: Any, known: Any) -> bool:
    """Whether `condition` can be true for a row for which `known` is true."""
    # A fragment that is never opened: Arrow only looks at its partition expression.
    fragment = _FORMAT.make_fragment("nothing", _NOWHERE, known)
    dataset = ds.FileSystemDataset([fragment], schema, _FORMAT, _NOWHERE)
    return any(True for _ in dataset.get_fragments(condition))


def bounds(schema: pa.Schema, condition: Any, partition: int, start: int, end: int) -> TableBounds | None:
    """The part of [start, end) of a partition that can satisfy the condition; None if no row can."""
    if condition is None:
        return TableBounds(start, end, None)
    # Literals have microseconds: Arrow would wrap a column of milliseconds in a cast, and could not derive bounds from
    # it.
    at = schema.get_field_index("timestamp")
    fine = schema.set(at, schema.field(at).with_type(_TIME))
    here = pc.field("partition") == pa.scalar(partition, pa.int32())
    offset, timestamp = pc.field("offset"), pc.field("timestamp")

    def holds(known: Any) -> bool:
        return may_hold(fine, condition, here & known)

    if start >= end or not holds((offset >= start) & (offset < end)):
        return None
    first = _last_true(start, end, lambda at: not holds(offset < at)) if not holds(offset < start) else start
    last = _last_true(start, end, lambda at: holds(offset >= at))
    since_ms = _last_true(0, _TIME_MS_END, lambda at: not holds(timestamp < _time(at)))
    return TableBounds(max(start, first), min(end, last + 1), since_ms or None)


def _last_true(low: int, high: int, test: Callable[[int], bool]) -> int:
    """The largest number of [low, high) for which the test is true, if it is true up to some number; `low` if never."""
    while high - low > 1:
        middle = (low + high) // 2
        if test(middle):
            low = middle
        else:
            high = middle
    return low


def _time(timestamp_ms: int) -> pa.Scalar:
    return pa.scalar(_EPOCH + timedelta(milliseconds=timestamp_ms), _TIME)
