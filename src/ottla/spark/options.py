"""The options of the data source `ottla`: one table of all of them, and the parsers of their values.

Rules:
- Options that Spark's Kafka connector has keep their names and meanings; Ottla's own options are added. Names are
  case-insensitive, as everywhere in Spark.
- A name that is not in the table is an error that suggests the most similar name. An option of the other direction (a
  writing option on a read) is an error, too. `kafka.*` names are Kafka's client settings: see `spark.kafka_settings`.
- Options are only parsed here; `spark.read.settings` and `spark.sink.settings` check whether they fit together.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Flag, auto
from typing import Any, NamedTuple

KAFKA_PREFIX = "kafka."
_UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionError(ValueError):
    """An option that does not exist, has an invalid value, or contradicts another option."""


class Use(Flag):
    """Whether an option is for reading, writing or both."""

    READ = auto()
    WRITE = auto()
    BOTH = READ | WRITE


class Option(NamedTuple):
    """One line of the table."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    doc: str
    use: Use = Use.READ


def text(value: str) -> str:
    """The value without the blanks around it."""
    return value.strip()


def whole(value: str) -> int:
    """A whole number."""
    try:
        return int(value.strip())
    except ValueError:
        raise OptionError(f"a whole number is expected, not {value!r}") from None


def positive(value: str) -> int:
    """A whole number above zero."""
    number = whole(value)
    if number <= 0:
        raise OptionError(f"must be positive, not {value!r}")
    return number


def boolean(value: str) -> bool:
    """true or false."""
    lowered = value.strip().lower()
    if lowered not in ("true", "false"):
        raise OptionError(f"true or false is expected, not {value!r}")
    return lowered == "true"


def one_of(*choices: str) -> Callable[[str], str]:
    """Make a parser that accepts one of these words, in any case."""

    def parse(value: str) -> str:
        lowered = value.strip().lower()
        if lowered not in choices:
            raise OptionError(f"one of {', '.join(choices)} is expected, not {value!r}")
        return lowered

    return parse


def duration_ms(value: str) -> int:
    """A time as Spark writes it: `250ms`, `15m`, or a number of milliseconds."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", value.strip().lower())
    if found is None or found[2] not in _UNITS_MS:
        raise OptionError(f"a time such as 500ms, 30s or 15m is expected, not {value!r}")
    return int(found[1]) * _UNITS_MS[found[2]]


def names(value: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def name(value: str) -> str:
    """A text that is not empty."""
    stripped = value.strip()
    if not stripped:
        raise OptionError("must not be empty")
    return stripped


def run_and_batch(value: str) -> tuple[str, int]:
    """The id of a sink's run and the number of one of its batches: `0a1b-...:17`."""
    run, colon, batch = value.strip().rpartition(":")
    if not (run and colon and batch.isdecimal()):
        raise OptionError(f"<run>:<batch> is expected, as the error that asks for it says, not {value!r}")
    return run, int(batch)


FORMATS = one_of("avro", "json", "protobuf", "raw", "string")

TABLE: tuple[Option, ...] = (
    # --- what to read -------------------------------------------------------------------------------------------
    Option("subscribe", str, None, "Topics to read, with commas between them."),
    Option("subscribePattern", str, None, "A regular expression; topics in whose name it is found are read."),
    Option("assign", str, None, 'Partitions to read: `{"topic": [0, 1]}`.'),
    Option("startingOffsets", str, None, "`earliest`, `latest` or offsets as JSON; -2 is earliest, -1 latest."),
    Option("endingOffsets", str, None, "Batch only: `latest` or offsets as JSON, the first one not read."),
    Option("startingOffsetsByTimestamp", str, None, "Where to begin by time (ms since 1970) per partition, as JSON."),
    Option("endingOffsetsByTimestamp", str, None, "Batch only: where to end by time per partition, as JSON."),
    Option("startingTimestamp", whole, None, "Where to begin by time (ms since 1970), for all partitions."),
    Option("endingTimestamp", whole, None, "Batch only: where to end by time, for all partitions."),
    Option(
        "startingOffsetsByTimestampStrategy",
        one_of("error", "latest"),
        "error",
        "What becomes of a partition that has nothing so late: `error`, or begin at its `latest` offset.",
    ),
    # --- how much at once ---------------------------------------------------------------------------------------
    Option("maxOffsetsPerTrigger", positive, None, "Streaming: at most so many offsets in one micro-batch."),
    Option("minOffsetsPerTrigger", positive, None, "Streaming: wait until there are so many new offsets ..."),
    Option("maxTriggerDelay", duration_ms, 15 * 60_000, "... but no longer than this."),
    Option("minPartitions", positive, None, "Large ranges are split until there are about so many Spark tasks."),
    Option("maxRecordsPerPartition", positive, None, "No Spark task reads more offsets than this."),
    Option("maxBytesPerPartition", positive, None, "No Spark task reads much more than so many bytes (estimated)."),
    # --- the rows -----------------------------------------------------------------------------------------------
    Option("includeHeaders", boolean, False, "Whether there is a column `headers`.", Use.BOTH),
    Option("columns", names, (), "Only these columns, in this order: what is not wanted costs nothing."),
    Option("filterPushdown", boolean, False, "Take over filters (with `spark.sql.python.filterPushdown.enabled`)."),
    Option("rowsPerBatch", positive, 20_000, "About so many rows are handed to Spark at once."),
    # --- behaviour ----------------------------------------------------------------------------------------------
    Option("failOnDataLoss", boolean, True, "Whether records that are gone before they were read are an error."),
    Option("groupIdPrefix", text, None, "What the group under which a query appears begins with."),
    Option("fetchOffset.numRetries", whole, 3, "How often offsets that went backwards are asked for again."),
    Option("fetchOffset.retryIntervalMs", duration_ms, 1_000, "And how long to wait in between."),
    Option("kafkaConsumer.pollTimeoutMs", duration_ms, 120_000, "How long a task waits for records that must exist."),
    Option("partition.metadata.cache.ttl.ms", whole, -1, "Taken for compatibility: metadata is always asked for."),
    # --- typed columns (spark.typed) ----------------------------------------------------------------------------
    Option("value.format", FORMATS, "raw", "What values are: decoded into typed columns.", Use.BOTH),
    Option("key.format", FORMATS, "raw", "What keys are.", Use.BOTH),
    Option("schema.registry.url", text, None, "Where the schema registry is; several with commas.", Use.BOTH),
    Option("schema.registry.basic.auth.user.info", text, None, "`user:password` for the registry.", Use.BOTH),
    Option("schema.registry.bearer.auth.token", text, None, "A token for the registry.", Use.BOTH),
    Option("value.subject", text, None, "The subject of values, `<topic>-value` unless told.", Use.BOTH),
    Option("key.subject", text, None, "The subject of keys, `<topic>-key` unless told.", Use.BOTH),
    Option("value.schema", str, None, "The schema of values, instead of the registry's.", Use.BOTH),
    Option("key.schema", str, None, "The schema of keys, instead of the registry's.", Use.BOTH),
    Option("value.version", text, None, "The version of the subject to read with; the latest unless told.", Use.BOTH),
    Option("key.version", text, None, "The same for keys.", Use.BOTH),
    Option("value.message", text, None, "Protobuf: the message of the file that values are.", Use.BOTH),
    Option("key.message", text, None, "Protobuf: the message of the file that keys are.", Use.BOTH),
    Option("columns.flatten", boolean, False, "Typed fields as columns of their own.", Use.BOTH),
    Option("on.bad", one_of("fail", "null", "corrupt", "dlq"), "fail", "What becomes of records that do not decode."),
    Option("dlq.topic", text, None, "Where bad records go with `on.bad=dlq`."),
    # --- writing ------------------------------------------------------------------------------------------------
    Option("topic", text, None, "Where rows go that have no column `topic`.", Use.WRITE),
    Option("delivery", one_of("exactly_once", "at_least_once"), None, "What a crash may cost.", Use.WRITE),
    Option("sink.id", name, None, "The name of the sink in the exactly-once protocol.", Use.WRITE),
    Option("sink.give.up", run_and_batch, None, "`<run>:<batch>`: lost rows of that batch are not missed.", Use.WRITE),
    Option("batch.id", whole, None, "Batch writes: the number of this write; one that was done is not.", Use.WRITE),
    Option("checkpointLocation", text, None, "Spark's own; where a streaming query keeps its state.", Use.WRITE),
    Option("queryName", text, None, "Spark's own.", Use.WRITE),
    Option("path", text, None, "Spark's own; it has no meaning here.", Use.WRITE),
)
_BY_NAME = {option.name.lower(): option for option in TABLE}


def parse_options(given: Mapping[str, str], use: Use) -> dict[str, Any]:
    """All options of one direction by their names as in the table, with defaults for those that were not given.
    `kafka.*` options are left out. Raises OptionError on unknown options and bad values.
    """
    found = {option.name: option.default for option in TABLE if option.use & use}
    for name, value in given.items():
        lowered = name.lower()
        if lowered.startswith(KAFKA_PREFIX):
            continue
        option = _BY_NAME.get(lowered)
        if option is None:
            raise OptionError(f"unknown option {name!r}{nearest(name, _names_of(use))}")
        if not option.use & use:
            raise OptionError(f"option {option.name!r} is for {'writing' if option.use & Use.WRITE else 'reading'}")
        try:
            found[option.name] = option.parse(value)
        except OptionError as error:
            raise OptionError(f"option {option.name}: {error}") from None
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """`: did you mean 'x'?` for the known name that is most similar; empty if none is similar."""
    by_lower = {each.lower(): each for each in known}
    alike = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f": did you mean {by_lower[alike[0]]!r}?" if alike else ""


def _names_of(use: Use) -> list[str]:
    return [option.name for option in TABLE if option.use & use] + ["kafka.bootstrap.servers"]
