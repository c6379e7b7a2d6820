"""The settings of a topic: Kafka 4.3.1's and our own.

Most are declared from a broker setting, whose value holds when the topic does not set one. They stand in the order of
Kafka's definition, because with several bad values in one request the first in this order is reported.
"""

from typing import Any, Final

from ottla.model.section import Section
from ottla.model.setting import NOT_YET, Setting
from ottla.model.settings import cleaner, log, own, replication, tiered
from ottla.model.validators import DeadLetterTopic, OneOf, ThrottledReplicas, at_least

topic = Section("Topics", "Set per topic; without a value of its own a topic follows the broker setting named here.")

SEGMENT_BYTES = topic.following("segment.bytes", log.LOG_SEGMENT_BYTES)
SEGMENT_MS = topic.following(
    "segment.ms",
    log.LOG_ROLL_HOURS,
    "Age at which a segment is closed even if it is not full.",
    before=(log.LOG_ROLL_MS,),
)
SEGMENT_JITTER_MS = topic.following(
    "segment.jitter.ms",
    log.LOG_ROLL_JITTER_HOURS,
    "Largest random part taken off segment.ms, so that segments do not close all at once.",
    before=(log.LOG_ROLL_JITTER_MS,),
)
SEGMENT_INDEX_BYTES = topic.following("segment.index.bytes", log.LOG_INDEX_SIZE_MAX_BYTES)
FLUSH_MESSAGES = topic.following("flush.messages", log.LOG_FLUSH_INTERVAL_MESSAGES)
FLUSH_MS = topic.following(
    "flush.ms",
    log.LOG_FLUSH_SCHEDULER_INTERVAL_MS,
    "Longest time a record waits to be synced to disk.",
    before=(log.LOG_FLUSH_INTERVAL_MS,),
    valid=at_least(0),
)
RETENTION_BYTES = topic.following("retention.bytes", log.LOG_RETENTION_BYTES)
RETENTION_MS = topic.following(
    "retention.ms",
    log.LOG_RETENTION_HOURS,
    "How long records are kept; -1 for ever.",
    before=(log.LOG_RETENTION_MS, log.LOG_RETENTION_MINUTES),
    valid=at_least(-1),
)
MAX_MESSAGE_BYTES = topic.following(
    "max.message.bytes", log.MESSAGE_MAX_BYTES, "Largest batch the topic accepts, after compression."
)
INDEX_INTERVAL_BYTES = topic.following("index.interval.bytes", log.LOG_INDEX_INTERVAL_BYTES)
DELETE_RETENTION_MS = topic.following("delete.retention.ms", cleaner.LOG_CLEANER_DELETE_RETENTION_MS)
MIN_COMPACTION_LAG_MS = topic.following("min.compaction.lag.ms", cleaner.LOG_CLEANER_MIN_COMPACTION_LAG_MS)
MAX_COMPACTION_LAG_MS = topic.following("max.compaction.lag.ms", cleaner.LOG_CLEANER_MAX_COMPACTION_LAG_MS)
FILE_DELETE_DELAY_MS = topic.following("file.delete.delay.ms", log.LOG_SEGMENT_DELETE_DELAY_MS)
MIN_CLEANABLE_DIRTY_RATIO = topic.following("min.cleanable.dirty.ratio", cleaner.LOG_CLEANER_MIN_CLEANABLE_RATIO)
CLEANUP_POLICY = topic.following("cleanup.policy", log.LOG_CLEANUP_POLICY)
UNCLEAN_LEADER_ELECTION_ENABLE = topic.following(
    "unclean.leader.election.enable", replication.UNCLEAN_LEADER_ELECTION_ENABLE
)
MIN_INSYNC_REPLICAS = topic.following("min.insync.replicas", replication.MIN_INSYNC_REPLICAS)
COMPRESSION_TYPE = topic.following("compression.type", log.COMPRESSION_TYPE)
COMPRESSION_GZIP_LEVEL = topic.following("compression.gzip.level", log.COMPRESSION_GZIP_LEVEL)
COMPRESSION_LZ4_LEVEL = topic.following("compression.lz4.level", log.COMPRESSION_LZ4_LEVEL)
COMPRESSION_ZSTD_LEVEL = topic.following("compression.zstd.level", log.COMPRESSION_ZSTD_LEVEL)
PREALLOCATE = topic.following("preallocate", log.LOG_PREALLOCATE)
MESSAGE_TIMESTAMP_TYPE = topic.following("message.timestamp.type", log.LOG_MESSAGE_TIMESTAMP_TYPE)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = topic.following(
    "message.timestamp.before.max.ms", log.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = topic.following(
    "message.timestamp.after.max.ms", log.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS
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
REMOTE_STORAGE_ENABLE = topic.boolean(
    "remote.storage.enable", False, "Keep older segments in the remote store.", no_effect=NOT_YET
)
LOCAL_RETENTION_MS = topic.following(
    "local.retention.ms",
    tiered.LOG_LOCAL_RETENTION_MS,
    "Time segments stay on the local disk; -2 means retention.ms.",
)
LOCAL_RETENTION_BYTES = topic.following(
    "local.retention.bytes", tiered.LOG_LOCAL_RETENTION_BYTES, "Size kept on the local disk; -2 means retention.bytes."
)
REMOTE_LOG_COPY_DISABLE = topic.boolean(
    "remote.log.copy.disable", False, "Copy no more segments out; what is out stays readable.", no_effect=NOT_YET
)
REMOTE_LOG_DELETE_ON_DISABLE = topic.boolean(
    "remote.log.delete.on.disable",
    False,
    "Delete what is in the remote store when the topic stops using it.",
    no_effect=NOT_YET,
)
INTERNAL_SEGMENT_BYTES = topic.optional_int32(
    "internal.segment.bytes", "Segment size in tests, without the usual lower bound.", internal=True
)
OTTLA_FSYNC_BEFORE_ACK = topic.following("ottla.fsync.before.ack", own.OTTLA_FSYNC_BEFORE_ACK)
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
    "ottla.schema.validation.dlq",
    "",
    "The dead-letter topic; without one, the topic's name with .dlq behind it.",
    valid=DeadLetterTopic(),
)

TOPIC_SETTINGS: Final[dict[str, Setting[Any]]] = topic.settings
