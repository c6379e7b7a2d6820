"""The topic settings that the log reads, resolved once per change and passed to the log as one frozen value."""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import topic_settings as topic
from ottla.model.config import Config
from ottla.model.settings.transactions import PRODUCER_ID_EXPIRATION_MS
from ottla.records.compress import Codec

_COMPACT = "compact"
_DELETE = "delete"
_APPEND_TIME = "LogAppendTime"
_CODECS = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
_LEVELS = {
    "gzip": topic.COMPRESSION_GZIP_LEVEL,
    "lz4": topic.COMPRESSION_LZ4_LEVEL,
    "zstd": topic.COMPRESSION_ZSTD_LEVEL,
}


class ContractTerms(NamedTuple):
    """The rules of a topic with a contract (`ottla.schema.validation`), and the action for records that break them.

    The log only makes sure that an inspector checks the records (`log/inspection.py`).
    """

    full: bool  # whether payloads must be readable, too
    of: str  # "value", "key" or "both"
    own_subjects: bool
    action: str  # "reject", "dlq" or "tag"
    dead_letters: str  # "": the topic's name with .dlq appended

    @classmethod
    def of_topic(cls, config: Config) -> ContractTerms | None:
        """Return the rules from a topic's settings; None if the topic has no contract."""
        level = config[topic.OTTLA_SCHEMA_VALIDATION]
        if level == "none":
            return None
        return cls(
            full=level == "full",
            of=config[topic.OTTLA_SCHEMA_VALIDATION_OF],
            own_subjects=config[topic.OTTLA_SCHEMA_VALIDATION_SUBJECT] == "topic",
            action=config[topic.OTTLA_SCHEMA_VALIDATION_ACTION],
            dead_letters=config[topic.OTTLA_SCHEMA_VALIDATION_DLQ],
        )


class LogConfig(NamedTuple):
    """The settings of one log; the defaults are those of the settings.

    A retention of -1 is unlimited; `codec` None keeps the producer's codec.
    """

    segment_bytes: int = topic.SEGMENT_BYTES.default_value
    segment_ms: int = topic.SEGMENT_MS.default_value
    segment_jitter_ms: int = topic.SEGMENT_JITTER_MS.default_value
    index_bytes: int = topic.SEGMENT_INDEX_BYTES.default_value
    index_interval_bytes: int = topic.INDEX_INTERVAL_BYTES.default_value
    flush_messages: int = topic.FLUSH_MESSAGES.default_value
    flush_ms: int = topic.FLUSH_MS.default_value
    retention_ms: int = topic.RETENTION_MS.default_value
    retention_bytes: int = topic.RETENTION_BYTES.default_value
    file_delete_delay_ms: int = topic.FILE_DELETE_DELAY_MS.default_value
    max_message_bytes: int = topic.MAX_MESSAGE_BYTES.default_value
    compact: bool = _COMPACT in topic.CLEANUP_POLICY.default_value
    dense: bool = False  # no offset is ever missing: the metadata log
    delete: bool = _DELETE in topic.CLEANUP_POLICY.default_value
    delete_retention_ms: int = topic.DELETE_RETENTION_MS.default_value
    min_compaction_lag_ms: int = topic.MIN_COMPACTION_LAG_MS.default_value
    max_compaction_lag_ms: int = topic.MAX_COMPACTION_LAG_MS.default_value
    min_cleanable_dirty_ratio: float = topic.MIN_CLEANABLE_DIRTY_RATIO.default_value
    codec: Codec | None = _CODECS[topic.COMPRESSION_TYPE.default_value]
    codec_level: int | None = None  # the level of `codec`, if it has levels
    log_append_time: bool = topic.MESSAGE_TIMESTAMP_TYPE.default_value == _APPEND_TIME
    timestamp_before_max_ms: int = topic.MESSAGE_TIMESTAMP_BEFORE_MAX_MS.default_value
    timestamp_after_max_ms: int = topic.MESSAGE_TIMESTAMP_AFTER_MAX_MS.default_value
    producer_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS.default_value
    min_insync_replicas: int = topic.MIN_INSYNC_REPLICAS.default_value
    fsync_before_ack: bool = topic.OTTLA_FSYNC_BEFORE_ACK.default_value
    contract: ContractTerms | None = None

    @classmethod
    def of(cls, config: Config) -> LogConfig:
        """Make it from the resolved settings of one topic (and of its broker, for settings that no topic has)."""
        compression = config[topic.COMPRESSION_TYPE]
        policies = config[topic.CLEANUP_POLICY]
        return cls(
            segment_bytes=config[topic.INTERNAL_SEGMENT_BYTES] or config[topic.SEGMENT_BYTES],
            segment_ms=config[topic.SEGMENT_MS],
            segment_jitter_ms=config[topic.SEGMENT_JITTER_MS],
            index_bytes=config[topic.SEGMENT_INDEX_BYTES],
            index_interval_bytes=config[topic.INDEX_INTERVAL_BYTES],
            flush_messages=config[topic.FLUSH_MESSAGES],
            flush_ms=config[topic.FLUSH_MS],
            retention_ms=config[topic.RETENTION_MS],
            retention_bytes=config[topic.RETENTION_BYTES],
            file_delete_delay_ms=config[topic.FILE_DELETE_DELAY_MS],
            max_message_bytes=config[topic.MAX_MESSAGE_BYTES],
            compact=_COMPACT in policies,
            delete=_DELETE in policies,
            delete_retention_ms=config[topic.DELETE_RETENTION_MS],
            min_compaction_lag_ms=config[topic.MIN_COMPACTION_LAG_MS],
            max_compaction_lag_ms=config[topic.MAX_COMPACTION_LAG_MS],
            min_cleanable_dirty_ratio=config[topic.MIN_CLEANABLE_DIRTY_RATIO],
            codec=_CODECS[compression],
            codec_level=config[_LEVELS[compression]] if compression in _LEVELS else None,
            log_append_time=config[topic.MESSAGE_TIMESTAMP_TYPE] == _APPEND_TIME,
            timestamp_before_max_ms=config[topic.MESSAGE_TIMESTAMP_BEFORE_MAX_MS],
            timestamp_after_max_ms=config[topic.MESSAGE_TIMESTAMP_AFTER_MAX_MS],
            producer_expiration_ms=config[PRODUCER_ID_EXPIRATION_MS],
            min_insync_replicas=config[topic.MIN_INSYNC_REPLICAS],
            fsync_before_ack=config[topic.OTTLA_FSYNC_BEFORE_ACK],
            contract=ContractTerms.of_topic(config),
        )
