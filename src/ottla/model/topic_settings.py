"""The settings of a topic: Kafka 4.3.1's and our own.

Each names the broker settings it falls back to (`synonyms`, best first) when the topic does not set it. They stand in
the order of Kafka's definition, because with several bad values in one request the first in this order is reported.
"""

from typing import Any, Final

from ottla.model.limits import INT64_MAX
from ottla.model.section import Section
from ottla.model.setting import Setting
from ottla.model.validators import GzipLevel, Items, OneOf, ThrottledReplicas, at_least, between

topic = Section("Topics", "Set per topic; without a value of its own a topic follows the broker setting named here.")

SEGMENT_BYTES = topic.int32(
    "segment.bytes",
    1_073_741_824,
    "Size at which a segment is closed.",
    valid=at_least(1_048_576),
    synonyms=("log.segment.bytes",),
)
SEGMENT_MS = topic.int64(
    "segment.ms",
    604_800_000,
    "Age at which a segment is closed even if it is not full.",
    valid=at_least(1),
    synonyms=("log.roll.ms", "log.roll.hours"),
)
SEGMENT_JITTER_MS = topic.int64(
    "segment.jitter.ms",
    0,
    "Largest random part taken off segment.ms, so that segments do not close all at once.",
    valid=at_least(0),
    synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
SEGMENT_INDEX_BYTES = topic.int32(
    "segment.index.bytes",
    10_485_760,
    "Largest index of a segment.",
    valid=at_least(4),
    synonyms=("log.index.size.max.bytes",),
)
FLUSH_MESSAGES = topic.int64(
    "flush.messages",
    INT64_MAX,
    "Records after which the log is synced to disk.",
    valid=at_least(1),
    synonyms=("log.flush.interval.messages",),
)
FLUSH_MS = topic.int64(
    "flush.ms",
    INT64_MAX,
    "Longest time a record waits to be synced to disk.",
    valid=at_least(0),
    synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)
RETENTION_BYTES = topic.int64(
    "retention.bytes",
    -1,
    "Size of a partition above which its oldest segments go; -1 for no limit.",
    synonyms=("log.retention.bytes",),
)
RETENTION_MS = topic.int64(
    "retention.ms",
    604_800_000,
    "How long records are kept; -1 for ever.",
    valid=at_least(-1),
    synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
MAX_MESSAGE_BYTES = topic.int32(
    "max.message.bytes",
    1_048_588,
    "Largest batch the topic accepts, after compression.",
    valid=at_least(0),
    synonyms=("message.max.bytes",),
)
INDEX_INTERVAL_BYTES = topic.int32(
    "index.interval.bytes",
    4_096,
    "Bytes of log between two entries of the index.",
    valid=at_least(0),
    synonyms=("log.index.interval.bytes",),
)
DELETE_RETENTION_MS = topic.int64(
    "delete.retention.ms",
    86_400_000,
    "Time a tombstone stays readable after compaction.",
    valid=at_least(0),
    synonyms=("log.cleaner.delete.retention.ms",),
)
MIN_COMPACTION_LAG_MS = topic.int64(
    "min.compaction.lag.ms",
    0,
    "Time a record is safe from compaction.",
    valid=at_least(0),
    synonyms=("log.cleaner.min.compaction.lag.ms",),
)
MAX_COMPACTION_LAG_MS = topic.int64(
    "max.compaction.lag.ms",
    INT64_MAX,
    "Time after which a record must have been compacted.",
    valid=at_least(1),
    synonyms=("log.cleaner.max.compaction.lag.ms",),
)
FILE_DELETE_DELAY_MS = topic.int64(
    "file.delete.delay.ms",
    60_000,
    "Time a removed file stays on disk.",
    valid=at_least(0),
    synonyms=("log.segment.delete.delay.ms",),
)
MIN_CLEANABLE_DIRTY_RATIO = topic.double(
    "min.cleanable.dirty.ratio",
    0.5,
    "Share of the log that must be uncleaned before it is compacted.",
    valid=between(0, 1),
    synonyms=("log.cleaner.min.cleanable.ratio",),
)
CLEANUP_POLICY = topic.items(
    "cleanup.policy",
    ("delete",),
    "What happens to old records: delete, compact or both.",
    valid=Items(("compact", "delete")),
    synonyms=("log.cleanup.policy",),
)
UNCLEAN_LEADER_ELECTION_ENABLE = topic.boolean(
    "unclean.leader.election.enable",
    False,
    "Let a replica lead that may lack acknowledged records, when no other is left.",
    synonyms=("unclean.leader.election.enable",),
)
MIN_INSYNC_REPLICAS = topic.int32(
    "min.insync.replicas",
    1,
    "Replicas that must hold a record before acks=all is answered.",
    valid=at_least(1),
    synonyms=("min.insync.replicas",),
)
COMPRESSION_TYPE = topic.text(
    "compression.type",
    "producer",
    "Codec batches are stored in; producer keeps what was sent.",
    valid=OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    synonyms=("compression.type",),
)
COMPRESSION_GZIP_LEVEL = topic.int32(
    "compression.gzip.level",
    -1,
    "Level used when the broker compresses with gzip.",
    valid=GzipLevel(),
    synonyms=("compression.gzip.level",),
)
COMPRESSION_LZ4_LEVEL = topic.int32(
    "compression.lz4.level",
    9,
    "Level used when the broker compresses with lz4.",
    valid=between(1, 17),
    synonyms=("compression.lz4.level",),
)
COMPRESSION_ZSTD_LEVEL = topic.int32(
    "compression.zstd.level",
    3,
    "Level used when the broker compresses with zstd.",
    valid=between(-131_072, 22),
    synonyms=("compression.zstd.level",),
)
PREALLOCATE = topic.boolean(
    "preallocate", False, "Give a new segment its full size at once.", synonyms=("log.preallocate",)
)
MESSAGE_TIMESTAMP_TYPE = topic.text(
    "message.timestamp.type",
    "CreateTime",
    "Whether a record keeps its producer's time or gets the time of the append.",
    valid=OneOf(("CreateTime", "LogAppendTime")),
    synonyms=("log.message.timestamp.type",),
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = topic.int64(
    "message.timestamp.before.max.ms",
    INT64_MAX,
    "How far in the past a record's time may lie.",
    valid=at_least(0),
    synonyms=("log.message.timestamp.before.max.ms",),
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = topic.int64(
    "message.timestamp.after.max.ms",
    3_600_000,
    "How far in the future a record's time may lie.",
    valid=at_least(0),
    synonyms=("log.message.timestamp.after.max.ms",),
)
LEADER_REPLICATION_THROTTLED_REPLICAS = topic.items(
    "leader.replication.throttled.replicas",
    (),
    "Replicas (partition:broker) that are throttled on the leader's side; * means all.",
    valid=ThrottledReplicas(),
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = topic.items(
    "follower.replication.throttled.replicas",
    (),
    "Replicas (partition:broker) that are throttled on the follower's side; * means all.",
    valid=ThrottledReplicas(),
)
REMOTE_STORAGE_ENABLE = topic.boolean("remote.storage.enable", False, "Keep older segments in the remote store.")
LOCAL_RETENTION_MS = topic.int64(
    "local.retention.ms",
    -2,
    "Time segments stay on the local disk; -2 means retention.ms.",
    valid=at_least(-2),
    synonyms=("log.local.retention.ms",),
)
LOCAL_RETENTION_BYTES = topic.int64(
    "local.retention.bytes",
    -2,
    "Size kept on the local disk; -2 means retention.bytes.",
    valid=at_least(-2),
    synonyms=("log.local.retention.bytes",),
)
REMOTE_LOG_COPY_DISABLE = topic.boolean(
    "remote.log.copy.disable", False, "Copy no more segments out; what is out stays readable."
)
REMOTE_LOG_DELETE_ON_DISABLE = topic.boolean(
    "remote.log.delete.on.disable", False, "Delete what is in the remote store when the topic stops using it."
)
INTERNAL_SEGMENT_BYTES = topic.optional_int32(
    "internal.segment.bytes", "Segment size in tests, without the usual lower bound.", internal=True
)
OTTLA_FSYNC_BEFORE_ACK = topic.boolean(
    "ottla.fsync.before.ack",
    False,
    "Sync a record to disk before it is acknowledged; many appends share one sync.",
    synonyms=("ottla.fsync.before.ack",),
)
OTTLA_SCHEMA_VALIDATION = topic.text(
    "ottla.schema.validation",
    "none",
    "What the broker checks of a record: that it names a registered schema, or that it can be read by it.",
    valid=OneOf(("none", "id", "full")),
)
OTTLA_SCHEMA_VALIDATION_ACTION = topic.text(
    "ottla.schema.validation.action",
    "reject",
    "What becomes of a record that fails: its batch is refused, it goes to a dead-letter topic, it gets a header.",
    valid=OneOf(("reject", "dlq", "tag")),
)
OTTLA_SCHEMA_VALIDATION_OF = topic.text(
    "ottla.schema.validation.of", "value", "What of a record is checked.", valid=OneOf(("value", "key", "both"))
)
OTTLA_SCHEMA_VALIDATION_SUBJECT = topic.text(
    "ottla.schema.validation.subject",
    "topic",
    "Where a schema must be registered: in the topic's own subjects (<topic>-value, <topic>-key), or in any.",
    valid=OneOf(("topic", "any")),
)
OTTLA_SCHEMA_VALIDATION_DLQ = topic.text(
    "ottla.schema.validation.dlq", "", "The dead-letter topic; without one, the topic's name with .dlq behind it."
)

TOPIC_SETTINGS: Final[dict[str, Setting[Any]]] = topic.settings
