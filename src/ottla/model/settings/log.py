"""Log. Where partitions are stored, how they are split into segments, kept and flushed."""

from ottla.model.limits import BATCH_BYTES_MAX, INT64_MAX
from ottla.model.section import CLUSTER_WIDE, HIGH, LOW, PER_BROKER, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import GzipLevel, Items, OneOf, at_least, between

log = Section("Log", "Where partitions lie, how they are cut into segments, kept and flushed.")

# Names with the same meaning, in order of precedence.
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_ROLL = ("log.roll.ms", "log.roll.hours")
_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_FLUSH = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")

LOG_DIR = log.items(
    "log.dir",
    ("/tmp/kafka-logs",),  # noqa: S108
    "Data directory, when log.dirs is not given.",
    valid=Items(empty=False),
    importance=HIGH,
)
LOG_DIRS = log.optional_items("log.dirs", "Data directories.", valid=Items(empty=False), importance=HIGH)
CORDONED_LOG_DIRS = log.items(
    "cordoned.log.dirs", (), "Data directories that get no new partitions.", valid=Items(), dynamic=PER_BROKER
)
LOG_DIR_FAILURE_TIMEOUT_MS = log.int64(
    "log.dir.failure.timeout.ms",
    30_000,
    "How long a broker goes on when it cannot report a failed directory.",
    valid=at_least(1),
    importance=LOW,
    no_effect=NOT_YET,
)
LOG_INITIAL_TASK_DELAY_MS = log.int64(
    "log.initial.task.delay.ms",
    30_000,
    "Wait after the start before the periodic work on logs begins.",
    valid=at_least(0),
    importance=LOW,
    internal=True,
    no_effect=NOT_YET,
)
MESSAGE_MAX_BYTES = log.int32(
    "message.max.bytes",
    BATCH_BYTES_MAX,
    "Largest batch a topic accepts, unless the topic says otherwise.",
    valid=at_least(0),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
COMPRESSION_TYPE = log.text(
    "compression.type",
    "producer",
    "Codec batches are stored in; producer keeps what was sent.",
    valid=OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
COMPRESSION_GZIP_LEVEL = log.int32(
    "compression.gzip.level",
    -1,
    "Level used when the broker compresses with gzip.",
    valid=GzipLevel(),
    dynamic=CLUSTER_WIDE,
)
COMPRESSION_LZ4_LEVEL = log.int32(
    "compression.lz4.level",
    9,
    "Level used when the broker compresses with lz4.",
    valid=between(1, 17),
    dynamic=CLUSTER_WIDE,
)
COMPRESSION_ZSTD_LEVEL = log.int32(
    "compression.zstd.level",
    3,
    "Level used when the broker compresses with zstd.",
    valid=between(-131_072, 22),
    dynamic=CLUSTER_WIDE,
)
LOG_SEGMENT_BYTES = log.int32(
    "log.segment.bytes",
    1_073_741_824,
    "Size at which a segment is closed.",
    valid=at_least(1_048_576),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
LOG_ROLL_MS = log.optional_int64(
    "log.roll.ms",
    "Age at which a segment is closed; wins over log.roll.hours.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    synonyms=_ROLL,
)
LOG_ROLL_HOURS = log.int32(
    "log.roll.hours",
    168,
    "Age in hours at which a segment is closed.",
    valid=at_least(1),
    importance=HIGH,
    synonyms=_ROLL,
)
LOG_ROLL_JITTER_MS = log.optional_int64(
    "log.roll.jitter.ms",
    "Largest random part taken off that age; wins over log.roll.jitter.hours.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    synonyms=_JITTER,
)
LOG_ROLL_JITTER_HOURS = log.int32(
    "log.roll.jitter.hours",
    0,
    "Largest random part taken off that age, in hours.",
    valid=at_least(0),
    importance=HIGH,
    synonyms=_JITTER,
)
LOG_SEGMENT_DELETE_DELAY_MS = log.int64(
    "log.segment.delete.delay.ms",
    60_000,
    "Time a removed file stays on disk.",
    valid=at_least(0),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
LOG_PREALLOCATE = log.boolean(
    "log.preallocate",
    False,
    "Give a new segment its full size at once.",
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
LOG_RETENTION_MS = log.optional_int64(
    "log.retention.ms",
    "How long records are kept; wins over minutes and hours; -1 for ever.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    synonyms=_RETENTION,
)
LOG_RETENTION_MINUTES = log.optional_int32(
    "log.retention.minutes",
    "How long records are kept, in minutes; wins over hours.",
    importance=HIGH,
    synonyms=_RETENTION,
)
LOG_RETENTION_HOURS = log.int32(
    "log.retention.hours", 168, "How long records are kept, in hours.", importance=HIGH, synonyms=_RETENTION
)
LOG_RETENTION_BYTES = log.int64(
    "log.retention.bytes",
    -1,
    "Size of a partition above which its oldest segments go; -1 for no limit.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
LOG_RETENTION_CHECK_INTERVAL_MS = log.int64(
    "log.retention.check.interval.ms",
    300_000,
    "How often logs are looked at for segments to remove.",
    valid=at_least(1),
)
LOG_CLEANUP_POLICY = log.items(
    "log.cleanup.policy",
    ("delete",),
    "What happens to old records: delete, compact or both.",
    valid=Items(("compact", "delete")),
    dynamic=CLUSTER_WIDE,
)
LOG_INDEX_SIZE_MAX_BYTES = log.int32(
    "log.index.size.max.bytes", 10_485_760, "Largest index of a segment.", valid=at_least(4), dynamic=CLUSTER_WIDE
)
LOG_INDEX_INTERVAL_BYTES = log.int32(
    "log.index.interval.bytes",
    4_096,
    "Bytes of log between two entries of the index.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
LOG_FLUSH_INTERVAL_MESSAGES = log.int64(
    "log.flush.interval.messages",
    INT64_MAX,
    "Records after which a log is synced to disk.",
    valid=at_least(1),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
LOG_FLUSH_INTERVAL_MS = log.optional_int64(
    "log.flush.interval.ms",
    "Longest time a record waits to be synced to disk.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    synonyms=_FLUSH,
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = log.int64(
    "log.flush.scheduler.interval.ms",
    INT64_MAX,
    "How often logs are checked for data to sync; stands in for log.flush.interval.ms.",
    importance=HIGH,
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = log.int32(
    "log.flush.offset.checkpoint.interval.ms",
    60_000,
    "How often recovery points are written.",
    valid=at_least(0),
    importance=HIGH,
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = log.int32(
    "log.flush.start.offset.checkpoint.interval.ms",
    60_000,
    "How often log start offsets are written.",
    valid=at_least(0),
    importance=HIGH,
    no_effect=NOT_YET,
)
LOG_MESSAGE_TIMESTAMP_TYPE = log.text(
    "log.message.timestamp.type",
    "CreateTime",
    "Whether a record keeps its producer's time or gets the time of the append.",
    valid=OneOf(("CreateTime", "LogAppendTime")),
    dynamic=CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = log.int64(
    "log.message.timestamp.before.max.ms",
    INT64_MAX,
    "How far in the past a record's time may lie.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = log.int64(
    "log.message.timestamp.after.max.ms",
    3_600_000,
    "How far in the future a record's time may lie.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = log.int32(
    "num.recovery.threads.per.data.dir",
    2,
    "Threads per data directory for recovery at the start.",
    valid=at_least(1),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
