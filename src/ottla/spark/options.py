"""The options of the data source `ottla`: each is declared once, with its type.

Rules:
- Options that Spark's Kafka connector has keep their names and meanings; Ottla's own options are added. Names are
  case-insensitive, as everywhere in Spark.
- An unknown name is an error that suggests the most similar name. An option of the other direction (a writing option on
  a read) is an error, too. `kafka.*` names are Kafka's client settings: see `spark.kafka_settings`.
- Options are only parsed here; `spark.read.settings` and `spark.sink.settings` check whether they fit together.
- An option is the key of its value, `options[FAIL_ON_DATA_LOSS]`, so type checkers know the value's type.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Generic, TypeVar

from ottla.client.security.secret import Secret
from ottla.spark.option_values import (
    OptionError,
    boolean,
    duration_ms,
    names,
    not_empty,
    one_of,
    positive,
    run_and_batch,
    text,
    whole,
)

T = TypeVar("T")
KAFKA_PREFIX = "kafka."
REGISTRY_TLS_PREFIX = "schema.registry.ssl."


class Use(Flag):
    """Whether an option is for reading, writing or both."""

    READ = auto()
    WRITE = auto()
    BOTH = READ | WRITE


@dataclass(frozen=True, slots=True, eq=False)
class Option(Generic[T]):
    """One option."""

    name: str
    parse: Callable[[str], T]
    default: T
    doc: str
    use: Use


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The values of all options of one direction; can be pickled."""

    values: Mapping[str, Any]  # by name, as in the declaration

    def __getitem__(self, option: Option[T]) -> T:
        value: T = self.values[option.name]
        return value


TABLE: list[Option[Any]] = []


def _option(name: str, parse: Callable[[str], T], default: T, doc: str, use: Use = Use.READ) -> Option[T]:
    declared = Option(name, parse, default, doc, use)
    TABLE.append(declared)
    return declared


FORMATS = one_of("avro", "json", "protobuf", "raw", "string")
_NO_NAMES: tuple[str, ...] = ()

# --- where -------------------------------------------------------------------------------------------------
PROFILE = _option("profile", text, None, "A profile of the driver's user: addresses and security.", Use.BOTH)

# --- what to read -------------------------------------------------------------------------------------------
SUBSCRIBE = _option("subscribe", str, None, "Topics to read, with commas between them.")
SUBSCRIBE_PATTERN = _option(
    "subscribePattern", str, None, "A regular expression; topics in whose name it is found are read."
)
ASSIGN = _option("assign", str, None, 'Partitions to read: `{"topic": [0, 1]}`.')
STARTING_OFFSETS = _option(
    "startingOffsets", str, None, "`earliest`, `latest` or offsets as JSON; -2 is earliest, -1 latest."
)
ENDING_OFFSETS = _option("endingOffsets", str, None, "Batch only: `latest` or offsets as JSON, the first one not read.")
STARTING_OFFSETS_BY_TIMESTAMP = _option(
    "startingOffsetsByTimestamp", str, None, "Where to begin by time (ms since 1970) per partition, as JSON."
)
ENDING_OFFSETS_BY_TIMESTAMP = _option(
    "endingOffsetsByTimestamp", str, None, "Batch only: where to end by time per partition, as JSON."
)
STARTING_TIMESTAMP = _option(
    "startingTimestamp", whole, None, "Where to begin by time (ms since 1970), for all partitions."
)
ENDING_TIMESTAMP = _option("endingTimestamp", whole, None, "Batch only: where to end by time, for all partitions.")
STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY = _option(
    "startingOffsetsByTimestampStrategy",
    one_of("error", "latest"),
    "error",
    "What becomes of a partition that has nothing so late: `error`, or begin at its `latest` offset.",
)

# --- how much at once ---------------------------------------------------------------------------------------
MAX_OFFSETS_PER_TRIGGER = _option(
    "maxOffsetsPerTrigger", positive, None, "Streaming: at most so many offsets in one micro-batch."
)
MIN_OFFSETS_PER_TRIGGER = _option(
    "minOffsetsPerTrigger", positive, None, "Streaming: wait until there are so many new offsets ..."
)
MAX_TRIGGER_DELAY = _option("maxTriggerDelay", duration_ms, 15 * 60_000, "... but no longer than this.")
MIN_PARTITIONS = _option(
    "minPartitions", positive, None, "Large ranges are split until there are about so many Spark tasks."
)
MAX_RECORDS_PER_PARTITION = _option(
    "maxRecordsPerPartition", positive, None, "No Spark task reads more offsets than this."
)
MAX_BYTES_PER_PARTITION = _option(
    "maxBytesPerPartition", positive, None, "No Spark task reads much more than so many bytes (estimated)."
)

# --- the rows -----------------------------------------------------------------------------------------------
INCLUDE_HEADERS = _option("includeHeaders", boolean, False, "Whether there is a column `headers`.", Use.BOTH)
COLUMNS = _option("columns", names, _NO_NAMES, "Only these columns, in this order: what is not wanted costs nothing.")
FILTER_PUSHDOWN = _option(
    "filterPushdown", boolean, False, "Take over filters (with `spark.sql.python.filterPushdown.enabled`)."
)
ROWS_PER_BATCH = _option("rowsPerBatch", positive, 20_000, "About so many rows are handed to Spark at once.")

# --- behaviour ----------------------------------------------------------------------------------------------
FAIL_ON_DATA_LOSS = _option(
    "failOnDataLoss", boolean, True, "Whether records that are gone before they were read are an error."
)
GROUP_ID_PREFIX = _option("groupIdPrefix", text, None, "What the group under which a query appears begins with.")
FETCH_OFFSET_NUM_RETRIES = _option(
    "fetchOffset.numRetries", whole, 3, "How often offsets that went backwards are asked for again."
)
FETCH_OFFSET_RETRY_INTERVAL_MS = _option(
    "fetchOffset.retryIntervalMs", duration_ms, 1_000, "And how long to wait in between."
)
KAFKA_CONSUMER_POLL_TIMEOUT_MS = _option(
    "kafkaConsumer.pollTimeoutMs", duration_ms, 120_000, "How long a task waits for records that must exist."
)
PARTITION_METADATA_CACHE_TTL_MS = _option(
    "partition.metadata.cache.ttl.ms", whole, -1, "Taken for compatibility: metadata is always asked for."
)

# --- typed columns (spark.typed) ----------------------------------------------------------------------------
VALUE_FORMAT = _option("value.format", FORMATS, "raw", "What values are: decoded into typed columns.", Use.BOTH)
KEY_FORMAT = _option("key.format", FORMATS, "raw", "What keys are.", Use.BOTH)
SCHEMA_REGISTRY_URL = _option(
    "schema.registry.url", text, None, "Where the schema registry is; several with commas.", Use.BOTH
)
SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO = _option(
    "schema.registry.basic.auth.user.info", Secret, None, "`user:password` for the registry.", Use.BOTH
)
SCHEMA_REGISTRY_BEARER_AUTH_TOKEN = _option(
    "schema.registry.bearer.auth.token", Secret, None, "A token for the registry.", Use.BOTH
)
SCHEMA_REGISTRY_BASIC_AUTH_CREDENTIALS_SOURCE = _option(
    "schema.registry.basic.auth.credentials.source", text, None, "`SASL_INHERIT`: the cluster's user.", Use.BOTH
)
SCHEMA_REGISTRY_BEARER_AUTH_CREDENTIALS_SOURCE = _option(
    "schema.registry.bearer.auth.credentials.source", text, None, "`STATIC_TOKEN`.", Use.BOTH
)
VALUE_SUBJECT = _option("value.subject", text, None, "The subject of values, `<topic>-value` unless told.", Use.BOTH)
KEY_SUBJECT = _option("key.subject", text, None, "The subject of keys, `<topic>-key` unless told.", Use.BOTH)
VALUE_SCHEMA = _option("value.schema", str, None, "The schema of values, instead of the registry's.", Use.BOTH)
KEY_SCHEMA = _option("key.schema", str, None, "The schema of keys, instead of the registry's.", Use.BOTH)
VALUE_VERSION = _option(
    "value.version", text, None, "The version of the subject to read with; the latest unless told.", Use.BOTH
)
KEY_VERSION = _option("key.version", text, None, "The same for keys.", Use.BOTH)
VALUE_MESSAGE = _option("value.message", text, None, "Protobuf: the message of the file that values are.", Use.BOTH)
KEY_MESSAGE = _option("key.message", text, None, "Protobuf: the message of the file that keys are.", Use.BOTH)
COLUMNS_FLATTEN = _option("columns.flatten", boolean, False, "Typed fields as columns of their own.", Use.BOTH)
ON_BAD = _option(
    "on.bad", one_of("fail", "null", "corrupt", "dlq"), "fail", "What becomes of records that do not decode."
)
DLQ_TOPIC = _option("dlq.topic", text, None, "Where bad records go with `on.bad=dlq`.")

# --- writing ------------------------------------------------------------------------------------------------
TOPIC = _option("topic", text, None, "Where rows go that have no column `topic`.", Use.WRITE)
DELIVERY = _option("delivery", one_of("exactly_once", "at_least_once"), None, "What a crash may cost.", Use.WRITE)
SINK_ID = _option("sink.id", not_empty, None, "The name of the sink in the exactly-once protocol.", Use.WRITE)
SINK_GIVE_UP = _option(
    "sink.give.up", run_and_batch, None, "`<run>:<batch>`: lost rows of that batch are not missed.", Use.WRITE
)
BATCH_ID = _option(
    "batch.id", whole, None, "Batch writes: the number of this write; one that was done is not.", Use.WRITE
)
CHECKPOINT_LOCATION = _option(
    "checkpointLocation", text, None, "Spark's own; where a streaming query keeps its state.", Use.WRITE
)
QUERY_NAME = _option("queryName", text, None, "Spark's own.", Use.WRITE)
PATH = _option("path", text, None, "Spark's own; it has no meaning here.", Use.WRITE)

_BY_NAME = {option.name.lower(): option for option in TABLE}


def parse_options(given: Mapping[str, str], use: Use) -> SourceOptions:
    """All options of one direction, with defaults for those that were not given. `kafka.*` and `schema.registry.ssl.*`
    options are left out. Raises OptionError on unknown options and bad values.
    """
    found = {option.name: option.default for option in TABLE if option.use & use}
    for name, value in given.items():
        lowered = name.lower()
        if lowered.startswith((KAFKA_PREFIX, REGISTRY_TLS_PREFIX)):
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
    return SourceOptions(found)


def nearest(name: str, known: Iterable[str]) -> str:
    """`: did you mean 'x'?` for the known name that is most similar; empty if none is similar."""
    by_lower = {each.lower(): each for each in known}
    alike = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f": did you mean {by_lower[alike[0]]!r}?" if alike else ""


def _names_of(use: Use) -> list[str]:
    return [option.name for option in TABLE if option.use & use] + ["kafka.bootstrap.servers"]
