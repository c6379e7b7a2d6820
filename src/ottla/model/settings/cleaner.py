"""Compaction. How compacted logs are cleaned, and how much it may cost."""

from ottla.model.limits import DOUBLE_MAX, INT64_MAX
from ottla.model.section import CLUSTER_WIDE, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import at_least, between

cleaner = Section("Compaction", "How compacted logs are cleaned, and how much it may cost.")

LOG_CLEANER_ENABLE = cleaner.boolean("log.cleaner.enable", True, "Run log compaction.")
LOG_CLEANER_THREADS = cleaner.int32(
    "log.cleaner.threads",
    1,
    "Threads that compact logs.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = cleaner.double(
    "log.cleaner.io.max.bytes.per.second",
    DOUBLE_MAX,
    "Most bytes a second that compaction reads and writes.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = cleaner.int64(
    "log.cleaner.dedupe.buffer.size",
    134_217_728,
    "Memory for the map of keys to offsets, over all cleaner threads.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_IO_BUFFER_SIZE = cleaner.int32(
    "log.cleaner.io.buffer.size",
    524_288,
    "Memory for reading and writing while compacting, over all cleaner threads.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
LOG_CLEANER_IO_BUFFER_LOAD_FACTOR = cleaner.double(
    "log.cleaner.io.buffer.load.factor",
    0.9,
    "How full the map of keys may become before a pass ends.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_BACKOFF_MS = cleaner.int64(
    "log.cleaner.backoff.ms",
    15_000,
    "Wait before looking again when no log needs compaction.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_MIN_CLEANABLE_RATIO = cleaner.double(
    "log.cleaner.min.cleanable.ratio",
    0.5,
    "Share of a log that must be uncleaned before it is compacted.",
    valid=between(0, 1),
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_DELETE_RETENTION_MS = cleaner.int64(
    "log.cleaner.delete.retention.ms",
    86_400_000,
    "Time a tombstone stays readable after compaction.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS = cleaner.int64(
    "log.cleaner.min.compaction.lag.ms",
    0,
    "Time a record is safe from compaction.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS = cleaner.int64(
    "log.cleaner.max.compaction.lag.ms",
    INT64_MAX,
    "Time after which a record must have been compacted.",
    valid=at_least(1),
    dynamic=CLUSTER_WIDE,
)
