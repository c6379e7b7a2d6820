"""In which unit a number was written, and what becomes of it in a column that counts in another.

Spark and Java look at the reader's logical type alone, and take what was written in milliseconds for microseconds.
Here a moment stays what it was: columns hold microseconds, so both units fit. Any other change of unit is refused.
A number without a logical type is in whatever unit the reader says, as it is there.
"""

from __future__ import annotations

from ottla.columns.avro.nodes import AvroNode

# What moments in a unit are multiplied by in a column.
_MOMENTS = {"timestamp-millis": 1000, "timestamp-micros": 1}


def factor(writer: AvroNode, reader: AvroNode) -> int | None:
    """What a number of the writer's is multiplied by in a column of the reader's; None if it cannot be read as that."""
    was, is_now = writer.logical.removeprefix("local-"), reader.logical.removeprefix("local-")
    if not was or not is_now or was == is_now:
        return _MOMENTS.get(is_now, 1)
    return _MOMENTS[was] if was in _MOMENTS and is_now in _MOMENTS else None
