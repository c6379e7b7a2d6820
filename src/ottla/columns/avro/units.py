"""The unit in which a time was written, and its conversion to a column that counts in another unit.

Spark and Java use the reader's logical type alone, and take milliseconds for microseconds. Here a timestamp keeps its
meaning: columns hold microseconds, so both units fit. Any other change of unit is refused. A number without a logical
type is in the reader's unit, as it is in Spark and Java.
"""

from __future__ import annotations

from ottla.columns.avro.nodes import AvroNode

# The factor from a timestamp's unit to that of its column.
_MOMENTS = {"timestamp-millis": 1000, "timestamp-micros": 1}


def factor(writer: AvroNode, reader: AvroNode) -> int | None:
    """Return the factor from the writer's number to the reader's column; None if it cannot be read as that."""
    was, is_now = writer.logical.removeprefix("local-"), reader.logical.removeprefix("local-")
    if not was or not is_now or was == is_now:
        return _MOMENTS.get(is_now, 1)
    return _MOMENTS[was] if was in _MOMENTS and is_now in _MOMENTS else None
