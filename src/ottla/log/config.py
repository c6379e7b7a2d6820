"""The topic settings that the log reads, resolved once per change and handed to it as one frozen value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.model.limits import BATCH_BYTES_MAX, GIB, INT64_MAX, MIB
from ottla.records.compress import Codec

if TYPE_CHECKING:
    from ottla.model.config import Config

_WEEK_MS = 7 * 24 * 3600 * 1000
_DAY_MS = 24 * 3600 * 1000
_CODECS = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class ContractTerms(NamedTuple):
    """What a topic with a contract asks of its records (`ottla.schema.validation`), and what becomes of those that
    break it. The log only sees to it that somebody inspects them (`log/inspection.py`)."""

    full: bool  # whether payloads must be readable, too
    of: str  # "value", "key" or "both"
    own_subjects: bool
    action: str  # "reject", "dlq" or "tag"
    dead_letters: str  # "": the topic's name with .dlq behind it

    @classmethod
    def of_topic(cls, config: Config) -> ContractTerms | None:
        """None where the topic has no contract."""
        get = config.get
        level = get("ottla.schema.validation")
        if level == "none":
            return None
        return cls(
            full=level == "full",
            of=get("ottla.schema.validation.of"),
            own_subjects=get("ottla.schema.validation.subject") == "topic",
            action=get("ottla.schema.validation.action"),
            dead_letters=get("ottla.schema.validation.dlq"),
        )


class LogConfig(NamedTuple):
    """Kafka's defaults. -1 in a retention means without end; `codec` None keeps what the producer chose."""

    segment_bytes: int = GIB
    segment_ms: int = _WEEK_MS
    segment_jitter_ms: int = 0
    index_bytes: int = 10 * MIB
    index_interval_bytes: int = 4096
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    retention_ms: int = _WEEK_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = BATCH_BYTES_MAX
    compact: bool = False
    dense: bool = False  # no offset is ever missing: the metadata's log
    delete: bool = True
    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    min_cleanable_dirty_ratio: float = 0.5
    codec: Codec | None = None
    codec_level: int | None = None
    log_append_time: bool = False
    timestamp_before_max_ms: int = INT64_MAX
    timestamp_after_max_ms: int = 3_600_000
    producer_expiration_ms: int = _DAY_MS
    min_insync_replicas: int = 1
    fsync_before_ack: bool = False
    contract: ContractTerms | None = None

    @classmethod
    def of(cls, config: Config) -> LogConfig:
        """From the resolved settings of one topic (and, for what Kafka has per broker only, of the broker)."""
        get = config.get
        compression = get("compression.type")
        policies = get("cleanup.policy")
        level = f"compression.{compression}.level"
        return cls(
            segment_bytes=get("internal.segment.bytes") or get("segment.bytes"),
            segment_ms=get("segment.ms"),
            segment_jitter_ms=get("segment.jitter.ms"),
            index_bytes=get("segment.index.bytes"),
            index_interval_bytes=get("index.interval.bytes"),
            flush_messages=get("flush.messages"),
            flush_ms=get("flush.ms"),
            retention_ms=get("retention.ms"),
            retention_bytes=get("retention.bytes"),
            file_delete_delay_ms=get("file.delete.delay.ms"),
            max_message_bytes=get("max.message.bytes"),
            compact="compact" in policies,
            delete="delete" in policies,
            delete_retention_ms=get("delete.retention.ms"),
            min_compaction_lag_ms=get("min.compaction.lag.ms"),
            max_compaction_lag_ms=get("max.compaction.lag.ms"),
            min_cleanable_dirty_ratio=get("min.cleanable.dirty.ratio"),
            codec=_CODECS[compression],
            codec_level=get(level) if compression in ("gzip", "lz4", "zstd") else None,
            log_append_time=get("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms=get("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=get("message.timestamp.after.max.ms"),
            producer_expiration_ms=get("producer.id.expiration.ms"),
            min_insync_replicas=get("min.insync.replicas"),
            fsync_before_ack=get("ottla.fsync.before.ack"),
            contract=ContractTerms.of_topic(config),
        )
