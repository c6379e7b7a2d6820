"""A look into a client's batch, in steps: checks that need the records, and the rewritten batch if one is to be
written.

Most batches need none (`needed`): the header is enough. A look is needed if every record must have a key (compacted
topics), if timestamps have a lower bound, if the topic has a codec of its own, or a contract.

Rules:
- A look changes neither the log nor the client's bytes. So a worker may take it beside the loop, one step after the
  other; `append` then uses its result, or takes the look itself if there is none.
- A step is short (`limits.LOOKED_AT_ONCE_RECORDS`), except for the decompression, which is one call that lets other
  threads run. The decompressed size of a batch is bounded.
- A result is valid for one configuration: after a change another look is needed.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ottla.log.steps import Steps
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode, RecordError
from ottla.records.batch import CODEC_MASK, HEADER_BYTES, NO_TIMESTAMP, BatchHeader, Buffer
from ottla.records.build import assemble_like
from ottla.records.compress import Codec, compressing
from ottla.records.record import decode, frames, payload

if TYPE_CHECKING:
    from ottla.log.config import LogConfig
    from ottla.log.inspection import Findings, Inspector

TIME_REFUSED = "One or more records have been rejected due to invalid timestamp"
_SHOWN_MAX = 3


class Look(Steps):
    """A look into one batch, whose structure and CRC have been checked, under one configuration.

    A topic with a contract needs an `inspector`, which must be the one for this batch.
    """

    __slots__ = (
        "_batch",
        "_inspector",
        "_limit_bytes",
        "_name",
        "_now_ms",
        "beyond_limit",
        "config",
        "findings",
        "header",
        "max_timestamp",
        "rewritten",
        "unpacked_bytes",
    )

    def __init__(
        self,
        batch: Buffer,
        header: BatchHeader,
        config: LogConfig,
        now_ms: int,
        name: str,
        limit_bytes: int,
        inspector: Inspector | None = None,
    ) -> None:
        assert (config.contract is None) == (inspector is None), "an inspector is needed where there is a contract"
        super().__init__(self._take())
        self._batch = batch
        self._now_ms = now_ms
        self._name = name
        self._limit_bytes = limit_bytes
        self._inspector = inspector
        self.header = header
        self.config = config
        self.max_timestamp = header.max_timestamp  # the largest timestamp of the records
        self.rewritten: bytearray | None = None  # the same records in the topic's own codec
        self.findings: Findings | None = None
        self.unpacked_bytes = 0
        self.beyond_limit = False  # the batch decompresses to more than `limit_bytes`

    def begin(self) -> None:
        if self._inspector is not None:
            self._inspector.begin()

    def whole(self) -> Look:
        """Take all steps at once."""
        self.begin()
        self.finish()
        return self

    def _take(self) -> Generator[None, None, None]:
        header, config = self.header, self.config
        if header.count > limits.LOOKED_INTO_RECORDS_MAX:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The batch has {header.count} records; topic partition {self._name}, whose records the broker looks "
                f"at, takes {limits.LOOKED_INTO_RECORDS_MAX} at most",
            )
        try:
            data = payload(self._batch, 0, header, self._limit_bytes)
        except ApiError as error:
            self.beyond_limit = error.code == ErrorCode.MESSAGE_TOO_LARGE
            raise
        self.unpacked_bytes = len(data)
        yield
        self.max_timestamp = yield from self._check_records(data)
        codec = header.codec if config.codec is None else config.codec
        if self._inspector is not None:
            attributes = header.attributes & ~CODEC_MASK | codec
            true_header = header._replace(max_timestamp=self.max_timestamp, attributes=attributes)
            self.findings = yield from self._inspector.look(data, true_header)
        if codec != header.codec:
            yield
            self.rewritten = yield from self._recompress(data, codec)

    def _check_records(self, data: bytes) -> Generator[None, None, int]:
        """Check keys and timestamps of all records; return the largest timestamp."""
        if len(data) < self.header.count * limits.LOOKED_AT_BY_COLUMN_BYTES:
            try:
                largest = yield from self._check_columns(data)
            except ApiError:
                largest = None
            if largest is not None:
                return largest
        return (yield from self._check_frames(data))  # which names the faults

    def _check_columns(self, data: bytes) -> Generator[None, None, int | None]:
        """Check small records, which are quicker decoded than skipped over; None if any has a fault."""
        header, config, now_ms = self.header, self.config, self._now_ms
        oldest, newest = now_ms - config.timestamp_before_max_ms, now_ms + config.timestamp_after_max_ms
        largest, at = NO_TIMESTAMP, header.base_offset
        for portion in decode(data, header):
            if at != header.base_offset:
                yield
            count = len(portion.offsets)
            latest = max(portion.timestamps)
            if (
                portion.offsets != list(range(at, at + count))
                or (config.compact and None in portion.keys)
                or (not config.log_append_time and (latest > newest or min(portion.timestamps) < oldest))
            ):
                return None
            largest, at = max(largest, latest), at + count
        return largest

    def _check_frames(self, data: bytes) -> Generator[None, None, int]:
        """Check records of any size; the error names each record that has a fault."""
        header, config, now_ms = self.header, self.config, self._now_ms
        faults = 0
        told: list[RecordError] = []
        bad_time = False
        largest = NO_TIMESTAMP
        before, after = config.timestamp_before_max_ms, config.timestamp_after_max_ms
        compact, checks_time = config.compact, not config.log_append_time
        oldest, newest = now_ms - before, now_ms + after
        for index, frame in enumerate(frames(data, header)):
            if not index % limits.LOOKED_AT_ONCE_RECORDS and index:
                yield
            timestamp = frame.timestamp
            if timestamp > largest:
                largest = timestamp
            if frame.offset - header.base_offset != index:
                raise ApiError(
                    ErrorCode.INVALID_RECORD,
                    f"Record {index} of the batch has offset delta {frame.offset - header.base_offset} in topic "
                    f"partition {self._name}",
                )
            if compact and frame.key_end < 0:
                text = f"Compacted topic cannot accept message without key in topic partition {self._name}"
            elif checks_time and not oldest <= timestamp <= newest and timestamp != NO_TIMESTAMP:
                bad_time = True
                text = out_of_range(timestamp, frame.offset, config, now_ms)
            else:
                continue
            faults += 1
            if len(told) < limits.RECORD_FAULTS_TOLD_MAX:
                told.append(RecordError(index, text))
        if faults:
            raise _refusal(told, faults, bad_time)
        return largest

    def _recompress(self, data: bytes, codec: Codec) -> Generator[None, None, bytearray]:
        """Return the batch with its records unchanged, compressed with another codec."""
        header, config = self.header, self.config
        most_bytes = config.max_message_bytes
        packed = bytearray()
        for piece in compressing(codec, data, config.codec_level):
            packed += piece
            if len(packed) + HEADER_BYTES > most_bytes:
                raise ApiError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"The record batch in the append to {self._name} exceeds the maximum configured value of "
                    f"{most_bytes} when it is packed as the topic's compression.type says.",
                )
            yield
        attributes = header.attributes & ~CODEC_MASK | codec
        return assemble_like(header._replace(attributes=attributes, max_timestamp=self.max_timestamp), packed)


def needed(config: LogConfig, header: BatchHeader) -> bool:
    """Whether the header is not enough under these settings."""
    return (
        config.compact
        or config.contract is not None
        or (config.timestamp_before_max_ms != limits.INT64_MAX and not config.log_append_time)
        or recompresses(config, header)
    )


def recompresses(config: LogConfig, header: BatchHeader) -> bool:
    return config.codec is not None and header.attributes & CODEC_MASK != config.codec


def may_be_needed(config: LogConfig) -> bool:
    """Whether any batch can need a look under these settings."""
    return (
        config.compact
        or config.contract is not None
        or config.codec is not None
        or config.timestamp_before_max_ms != limits.INT64_MAX
    )


def unpacked_bytes_max(packed_bytes: int) -> int:
    """Return how much batches of this size may decompress to if they are looked into."""
    wanted = max(limits.LOOKED_INTO_BYTES_MAX, limits.LOOKED_INTO_RATIO_MAX * packed_bytes)
    return min(wanted, limits.DECOMPRESSED_BATCH_BYTES_MAX)


def dated_ahead(batch: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> list[RecordError]:
    """Return errors for records with timestamps too far ahead; none if the batch cannot be read."""
    newest = now_ms + config.timestamp_after_max_ms
    try:
        return [
            RecordError(index, out_of_range(frame.timestamp, frame.offset, config, now_ms))
            for index, frame in enumerate(frames(payload(batch, 0, header, limits.DATED_BYTES_MAX), header))
            if frame.timestamp > newest
        ]
    except ApiError:
        return []


def out_of_range(timestamp: int, offset: int, config: LogConfig, now_ms: int) -> str:
    return f"Timestamp {timestamp} of message with offset {offset} is out of range. {bounds(config, now_ms)}"


def bounds(config: LogConfig, now_ms: int) -> str:
    return (
        f"The timestamp should be within [{now_ms - config.timestamp_before_max_ms}, "
        f"{now_ms + config.timestamp_after_max_ms}]"
    )


def _refusal(told: list[RecordError], faults: int, bad_time: bool) -> ApiError:
    if bad_time:
        return ApiError(ErrorCode.INVALID_TIMESTAMP, TIME_REFUSED, tuple(told))
    shown = ", ".join(f"RecordError(batchIndex={e.index}, message='{e.message}')" for e in told[:_SHOWN_MAX])
    text = (
        f"One or more records have been rejected due to {faults} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )
    return ApiError(ErrorCode.INVALID_RECORD, text, tuple(told))
