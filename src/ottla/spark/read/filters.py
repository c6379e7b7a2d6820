"""Filters that Spark pushes down: they narrow the range that is read, instead of being evaluated on every row.

Rules:
- Filters on topic, partition and offset are taken over completely. A lower bound of the time (`timestamp >= x`) moves
  the start of the range, and Spark still evaluates the filter on every row, because timestamps need not be in order.
- All other filters are left to Spark.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from ottla.model.ids import TopicPartition

_NEVER_NULL = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """The topics, partitions, offsets and times that pass all filters; None means no bound."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start: int = 0
    end: int | None = None
    since_ms: int | None = None

    def holds(self, partition: TopicPartition) -> bool:
        """Whether any record of the partition can pass."""
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )

    def clip(self, start: int, end: int) -> tuple[int, int]:
        """The part of a range of offsets that is within the bounds."""
        return max(start, self.start), end if self.end is None else min(end, self.end)


def narrow(bounds: ReadBounds, filters: Iterable[Filter]) -> Iterator[tuple[ReadBounds, Filter | None]]:
    """The bounds after each filter, and the filter if Spark still has to evaluate it."""
    for each in filters:
        narrower, is_whole = _narrow_by(bounds, each)
        bounds = narrower
        yield bounds, None if is_whole else each


def _narrow_by(bounds: ReadBounds, given: Filter) -> tuple[ReadBounds, bool]:
    match given:
        case IsNotNull((name,)) if name in _NEVER_NULL:
            return bounds, True
        case EqualTo(("topic",), str(value)):
            return replace(bounds, topics=_both(bounds.topics, [value])), True
        case In(("topic",), values) if all(isinstance(value, str) for value in values):
            return replace(bounds, topics=_both(bounds.topics, values)), True
        case EqualTo(("partition",), int(value)):
            return replace(bounds, partitions=_both(bounds.partitions, [value])), True
        case In(("partition",), values) if all(isinstance(value, int) for value in values):
            return replace(bounds, partitions=_both(bounds.partitions, values)), True
        case EqualTo(("offset",), int(value)):
            return _between(bounds, value, value + 1), True
        case GreaterThan(("offset",), int(value)):
            return _between(bounds, value + 1, None), True
        case GreaterThanOrEqual(("offset",), int(value)):
            return _between(bounds, value, None), True
        case LessThan(("offset",), int(value)):
            return _between(bounds, 0, value), True
        case LessThanOrEqual(("offset",), int(value)):
            return _between(bounds, 0, value + 1), True
        case EqualTo(("timestamp",), datetime() as value):
            return _since(bounds, value), False
        case GreaterThan(("timestamp",), datetime() as value):
            return _since(bounds, value), False
        case GreaterThanOrEqual(("timestamp",), datetime() as value):
            return _since(bounds, value), False
    return bounds, False


def _both(known: "frozenset[Any] | None", values: Iterable[Any]) -> "frozenset[Any]":
    return frozenset(values) if known is None else known & frozenset(values)


def _between(bounds: ReadBounds, start: int, end: int | None) -> ReadBounds:
    ends = [each for each in (bounds.end, end) if each is not None]
    return replace(bounds, start=max(bounds.start, start), end=min(ends) if ends else None)


def _since(bounds: ReadBounds, value: datetime) -> ReadBounds:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    since_ms = int(aware.timestamp() * 1000 // 1)
    return replace(bounds, since_ms=max(since_ms, bounds.since_ms if bounds.since_ms is not None else since_ms))
