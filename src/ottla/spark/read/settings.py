"""The settings of a read, from its options: which partitions are read, from where to where, and how they are fetched.

Rules:
- The combinations that Spark's connector refuses are refused: no or two ways to choose topics, a batch that starts at
  `latest`, a stream with an end.
- The result is small and can be pickled, because it is sent to the executors.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.spark.kafka_settings import KafkaSettings, parse_kafka_settings
from ottla.spark.option_values import OptionError, names
from ottla.spark.options import (
    ASSIGN,
    COLUMNS,
    DLQ_TOPIC,
    ENDING_OFFSETS,
    ENDING_OFFSETS_BY_TIMESTAMP,
    ENDING_TIMESTAMP,
    FAIL_ON_DATA_LOSS,
    GROUP_ID_PREFIX,
    INCLUDE_HEADERS,
    MAX_OFFSETS_PER_TRIGGER,
    MIN_OFFSETS_PER_TRIGGER,
    ON_BAD,
    STARTING_OFFSETS,
    STARTING_OFFSETS_BY_TIMESTAMP,
    STARTING_TIMESTAMP,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    SourceOptions,
    Use,
    parse_options,
)
from ottla.spark.read.offsets import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    ByTime,
    Everywhere,
    Limit,
    Specific,
    parse_limit,
    parse_partitions,
)

if TYPE_CHECKING:
    from ottla.client.consumer.fetching import ReadOptions

RAW_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS_COLUMN = "headers"
# A task reads one partition, with one large fetch at a time, which is under way while Spark takes the rows of the one
# before.
FETCH_BYTES = 8 * limits.MIB
_STRATEGIES = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen topics or partitions; exactly one of the three fields is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """All settings of a read."""

    kafka: KafkaSettings
    chosen: Chosen
    starting: Limit
    ending: Limit
    options: SourceOptions
    raw: Mapping[str, str]
    columns: tuple[str, ...]

    @property
    def fail_on_data_loss(self) -> bool:
        return self.options[FAIL_ON_DATA_LOSS]

    @property
    def read_committed(self) -> bool:
        return self.kafka.choice("isolation.level", "read_uncommitted", "read_committed") == "read_committed"

    def fetch_options(self) -> "ReadOptions":
        """Options for the executors' fetches."""
        from ottla.client.consumer.fetching import (
            ReadOptions,  # not at the top: Spark asks for schemas in processes that need no client
        )

        kafka = self.kafka
        partition_bytes = kafka.number("max.partition.fetch.bytes", FETCH_BYTES)
        return ReadOptions(
            max_wait_ms=kafka.number("fetch.max.wait.ms", 500),
            min_bytes=kafka.number("fetch.min.bytes", 1),
            max_bytes=max(kafka.number("fetch.max.bytes", 50 * limits.MIB), partition_bytes),
            max_partition_bytes=partition_bytes,
            read_committed=self.read_committed,
            check_crc=kafka.choice("check.crcs", "true", "false") == "true",
        )

    def group(self, query_id: str | None) -> str:
        """The group under which the query is seen: the option `kafka.group.id`, or a name made from the query's id."""
        told = self.kafka.get("group.id")
        if told:
            return told
        prefix = self.options[GROUP_ID_PREFIX]
        if query_id is None:
            return f"{prefix or 'spark-batch'}"
        return f"{prefix or 'spark'}-{query_id}"


def parse_read(raw: Mapping[str, str], *, streaming: bool | None) -> ReadSettings:
    """Parse and check the options. Raises OptionError if they are wrong. `streaming` is None while it is not known
    yet.
    """
    options = parse_options(raw, Use.READ)
    kafka = parse_kafka_settings(raw)
    starting = parse_limit(
        "starting",
        options[STARTING_OFFSETS],
        options[STARTING_OFFSETS_BY_TIMESTAMP],
        options[STARTING_TIMESTAMP],
        LATEST_OFFSET if streaming else EARLIEST_OFFSET,
    )
    ending = parse_limit(
        "ending",
        options[ENDING_OFFSETS],
        options[ENDING_OFFSETS_BY_TIMESTAMP],
        options[ENDING_TIMESTAMP],
        LATEST_OFFSET,
    )
    if streaming:
        _check_stream(options)
    elif streaming is not None:
        _check_batch(starting, ending)
    chosen = _chosen(options)
    _check_letters(options, chosen)
    return ReadSettings(kafka, chosen, starting, ending, options, dict(raw), _columns(options))


def _chosen(options: SourceOptions) -> Chosen:
    given = {option: value for option in _STRATEGIES if (value := options[option]) is not None}
    known = ", ".join(option.name for option in _STRATEGIES)
    if not given:
        raise OptionError(f"one of the options {known} must be specified: what is to be read?")
    if len(given) > 1:
        several = ", ".join(option.name for option in given)
        raise OptionError(f"only one of the options {known} can be specified, not {several}")
    ((option, value),) = given.items()
    if option is ASSIGN:
        return Chosen(partitions=parse_partitions(value))
    if option is SUBSCRIBE:
        topics = tuple(dict.fromkeys(names(value)))
        if not topics:
            raise OptionError(f"no topics to subscribe to: option 'subscribe' is {value!r}")
        return Chosen(topics=topics)
    if not value.strip():
        raise OptionError(f"pattern to subscribe is empty: option 'subscribePattern' is {value!r}")
    try:
        re.compile(value.strip())
    except re.error as error:
        raise OptionError(f"option subscribePattern: {value!r} is not a regular expression: {error}") from None
    return Chosen(pattern=value.strip())


def _columns(options: SourceOptions) -> tuple[str, ...]:
    known = (*RAW_COLUMNS, HEADERS_COLUMN) if options[INCLUDE_HEADERS] else RAW_COLUMNS
    chosen = options[COLUMNS]
    if not chosen:
        return known
    by_lower = {name.lower(): name for name in (*RAW_COLUMNS, HEADERS_COLUMN)}
    unknown = [name for name in chosen if name.lower() not in by_lower]
    if unknown:
        raise OptionError(f"option columns: there is no column {unknown[0]!r}; there are {', '.join(known)}")
    return tuple(dict.fromkeys(by_lower[name.lower()] for name in chosen))


def _check_letters(options: SourceOptions, chosen: Chosen) -> None:
    """Refuse a dead-letter topic that is read by the same query: its letters would be found bad again, without end."""
    letters = options[DLQ_TOPIC]
    if not letters:
        return
    if options[ON_BAD] != "dlq":
        raise OptionError(f"option dlq.topic has no effect with on.bad={options[ON_BAD]}: set on.bad=dlq")
    if letters in chosen.topics or any(each.topic == letters for each in chosen.partitions):
        raise OptionError(f"option dlq.topic: topic {letters!r} is read itself; dead letters need a topic of their own")
    if chosen.pattern is not None and re.search(chosen.pattern, letters):
        raise OptionError(
            f"option dlq.topic: the pattern {chosen.pattern!r} matches topic {letters!r}, so dead letters would be "
            "read again; choose a name that it does not match"
        )


def _check_stream(options: SourceOptions) -> None:
    if options[ENDING_OFFSETS] is not None:
        raise OptionError("ending offset not valid in streaming queries")
    if options[ENDING_OFFSETS_BY_TIMESTAMP] is not None or options[ENDING_TIMESTAMP] is not None:
        raise OptionError("ending timestamp not valid in streaming queries")
    least, most = options[MIN_OFFSETS_PER_TRIGGER], options[MAX_OFFSETS_PER_TRIGGER]
    if least is not None and most is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger ({least}) is higher than maxOffsetsPerTrigger ({most})")


def _check_batch(starting: Limit, ending: Limit) -> None:
    if starting == Everywhere(LATEST_OFFSET):
        raise OptionError("starting offset can't be latest for batch queries")
    if ending == Everywhere(EARLIEST_OFFSET):
        raise OptionError("ending offset can't be earliest for batch queries")
    if isinstance(starting, Specific):
        for partition, offset in starting.offsets.items():
            if offset == LATEST_OFFSET:
                raise OptionError(f"startingOffsets for {partition} can't be latest for batch queries")
    if isinstance(ending, Specific):
        for partition, offset in ending.offsets.items():
            if offset == EARLIEST_OFFSET:
                raise OptionError(f"ending offset for {partition} can't be earliest for batch queries")
    if isinstance(starting, Specific) and isinstance(ending, Specific):
        _check_pair(starting.offsets, ending.offsets, "offset")
    elif isinstance(starting, ByTime) and isinstance(ending, ByTime):
        if isinstance(starting.times, dict) and isinstance(ending.times, dict):
            _check_pair(starting.times, ending.times, "timestamp")
        elif isinstance(starting.times, int) and isinstance(ending.times, int) and starting.times > ending.times:
            raise OptionError(f"startingTimestamp {starting.times} is after endingTimestamp {ending.times}")


def _check_pair(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], what: str) -> None:
    if start.keys() != end.keys():
        odd = ", ".join(str(each) for each in sorted(start.keys() ^ end.keys()))
        raise OptionError(f"starting and ending {what}s must name the same partitions; only one of them has {odd}")
    for partition, begin in start.items():
        if begin >= 0 and 0 <= end[partition] < begin:
            raise OptionError(f"starting {what} {begin} of {partition} is after the ending {what} {end[partition]}")
