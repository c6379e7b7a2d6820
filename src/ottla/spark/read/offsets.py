"""Offsets in the form of options and checkpoints.

Rules:
- The JSON is that of Spark's Kafka connector, `{"topic": {"0": 23}}`, with topics and partitions in order; so progress
  listeners can read both, and each of the two can continue from a checkpoint of the other.
- In options -2 stands for the earliest and -1 for the latest offset; a checkpoint has neither.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.model.ids import TopicPartition
from ottla.spark.option_values import OptionError

LATEST_OFFSET = -1
EARLIEST_OFFSET = -2

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same named offset for all partitions: EARLIEST_OFFSET or LATEST_OFFSET."""

    offset: int


@dataclass(frozen=True, slots=True)
class Specific:
    """An offset, or one of the named offsets, for each partition."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class ByTime:
    """A time (ms since 1970) for each partition, or one time for all."""

    times: Offsets | int


Limit = Everywhere | Specific | ByTime


def parse_limit(
    side: str, offsets: str | None, by_timestamp: str | None, timestamp_ms: int | None, default: int
) -> Limit:
    """Parse where to begin or end (`side` is "starting" or "ending"). A time for all partitions takes precedence over
    times by partition, and these over offsets.
    """
    if timestamp_ms is not None:
        return ByTime(timestamp_ms)
    if by_timestamp is not None:
        return ByTime(parse_offsets(f"{side}OffsetsByTimestamp", by_timestamp))
    if offsets is None:
        return Everywhere(default)
    named = {"earliest": EARLIEST_OFFSET, "latest": LATEST_OFFSET}.get(offsets.strip().lower())
    if named is not None:
        return Everywhere(named)
    option = f"{side}Offsets"
    found = parse_offsets(option, offsets)
    for partition, offset in found.items():
        if offset < EARLIEST_OFFSET:
            raise OptionError(
                f"option {option}: {offset} is no offset of {partition}; below zero there are only "
                "-2 (the earliest) and -1 (the latest)"
            )
    return Specific(found)


def parse_offsets(option: str, value: str) -> Offsets:
    """Read `{"topic": {"0": 23, "1": -1}}`."""
    try:
        return offsets_of(json.loads(value))
    except (ValueError, TypeError, AttributeError):
        raise OptionError(
            f'option {option}: expected e.g. {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {value}'
        ) from None


def parse_partitions(value: str) -> tuple[TopicPartition, ...]:
    """Read `{"topic": [0, 1]}`."""
    try:
        found = json.loads(value)
        partitions = [
            TopicPartition(topic, index)
            for topic, indexes in found.items()
            for index in indexes
            if isinstance(index, int) and index >= 0
        ]
        if len(partitions) != sum(len(indexes) for indexes in found.values()) or not partitions:
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise OptionError(f'option assign: expected e.g. {{"topicA":[0,1],"topicB":[0,1]}}, got {value}') from None
    return tuple(sorted(set(partitions)))


def offsets_of(document: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """The offsets in the document of a checkpoint or progress report. Raises ValueError, TypeError or AttributeError if
    it is none.
    """
    found: Offsets = {}
    for topic, partitions in document.items():
        for index, offset in partitions.items():
            if isinstance(offset, bool) or not isinstance(offset, int):
                raise ValueError(f"{offset!r} is not an offset")
            found[TopicPartition(topic, int(index))] = offset
    return found


def document_of(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """The document of these offsets for a checkpoint."""
    document: dict[str, dict[str, int]] = {}
    for (topic, index), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(index)] = offset
    return document
