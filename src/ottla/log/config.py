"""The topic settings that the log reads, resolved once per change and handed to it as one frozen value."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.model.limits import BATCH_BYTES_MAX, GIB, INT64_MAX, MIB
from ottla.records.batch import BatchHeader
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


class Findings(Protocol):
    """What a contract has found in a batch."""

    def act(self, offset: int) -> bytearray | None:
        """What is written in the batch's place, with the same range of offsets; None: the batch itself.

        Called when it is known that the batch is no duplicate, with the offset it will get. Refuses it by an ApiError.
        """


class Inspect(Protocol):
    """How the batches of a topic with a contract are looked at, as a part of `log/look.py`."""

    def begin(self, name: str) -> Any:
        """On the loop, before the first step, for a batch of the log `name`: what `look` has to know of this moment.
        None: there is nothing yet that records could be judged by."""

    def look(self, data: bytes, header: BatchHeader, name: str, begun: Any) -> Generator[None, None, Findings | None]:
        """The steps. `data` are the unpacked records, `header` has the codec that they are to be packed with, `name` is
        the log's, and `begun` what `begin` said."""


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
    inspect: Inspect | None = None  # of topics with a contract

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
        )
