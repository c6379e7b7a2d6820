"""What a batch must obey to enter this log, beyond its structure (which `records.batch` checks) and its sequence
(`producers`).

The usual batch is judged by its header alone. The records are looked at only where the answer depends on them: keys of
a compacted topic, timestamps that the header shows to be out of bounds (or a lower bound at all, of which the header
says nothing), recompression.
"""

from __future__ import annotations

from ottla.log.config import LogConfig
from ottla.model.errors import ApiError, ErrorCode, RecordError
from ottla.model.limits import INT64_MAX
from ottla.records.batch import (
    CODEC_MASK,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    read_header,
    stamp_log_append_time,
    stamp_max_timestamp,
)
from ottla.records.build import build_batch
from ottla.records.record import frames, payload, records

_SHOWN_MAX = 3


def header_is_enough(config: LogConfig) -> bool:
    """Whether batches within the upper time bound need no second look under these settings."""
    return (
        not config.compact
        and config.codec is None
        and not config.log_append_time
        and config.timestamp_before_max_ms == INT64_MAX
    )


def check_size(size_bytes: int, config: LogConfig, name: str) -> None:
    if size_bytes > config.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {name} is {size_bytes} bytes which exceeds the maximum configured "
            f"value of {config.max_message_bytes}).",
        )
    if size_bytes > config.segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size_bytes} bytes in append to partition {name}, which exceeds the maximum "
            f"configured segment size of {config.segment_bytes}.",
        )


def validate(
    batch: bytearray | memoryview, header: BatchHeader, config: LogConfig, now_ms: int, name: str
) -> tuple[bytearray | memoryview, BatchHeader]:
    """The careful way: the batch to write (rewritten if the topic's settings ask for it) and its header."""
    checks_time = not config.log_append_time and (
        config.timestamp_before_max_ms != INT64_MAX or _too_new(header.max_timestamp, now_ms, config)
    )
    recompress = config.codec is not None and header.attributes & CODEC_MASK != config.codec
    if config.compact or checks_time or recompress:
        max_timestamp = _check_records(batch, header, config, now_ms, name)
        if max_timestamp != header.max_timestamp and not config.log_append_time:
            stamp_max_timestamp(batch, 0, max_timestamp)
            header = read_header(batch)
    if recompress:
        batch = _recompress(batch, header, config, now_ms)
        header = read_header(batch)
        check_size(header.size_bytes, config, name)
    elif config.log_append_time:
        stamp_log_append_time(batch, 0, now_ms)
        header = read_header(batch)
    return batch, header


def _too_new(timestamp: int, now_ms: int, config: LogConfig) -> bool:
    return timestamp - now_ms > config.timestamp_after_max_ms


def _check_records(batch: Buffer, header: BatchHeader, config: LogConfig, now_ms: int, name: str) -> int:
    """Keys and timestamps of all records; the largest timestamp."""
    errors: list[RecordError] = []
    bad_time = False
    largest = NO_TIMESTAMP
    before = config.timestamp_before_max_ms
    for index, frame in enumerate(frames(payload(batch, 0, header), header)):
        timestamp = frame.timestamp
        largest = max(largest, timestamp)
        if frame.offset - header.base_offset != index:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                f"Record {index} of the batch has offset delta {frame.offset - header.base_offset} in topic partition "
                f"{name}",
            )
        if config.compact and frame.key_end < 0:
            text = f"Compacted topic cannot accept message without key in topic partition {name}"
            errors.append(RecordError(index, text))
        elif (
            not config.log_append_time
            and timestamp != NO_TIMESTAMP
            and (now_ms - timestamp > before or _too_new(timestamp, now_ms, config))
        ):
            bad_time = True
            text = (
                f"Timestamp {timestamp} of message with offset {frame.offset} is out of range. The timestamp should be "
                f"within [{now_ms - before}, {now_ms + config.timestamp_after_max_ms}]"
            )
            errors.append(RecordError(index, text))
    if errors:
        raise _refusal(errors, bad_time)
    return largest


def _refusal(errors: list[RecordError], bad_time: bool) -> ApiError:
    if bad_time:
        text = "One or more records have been rejected due to invalid timestamp"
        return ApiError(ErrorCode.INVALID_TIMESTAMP, text, tuple(errors))
    shown = ", ".join(f"RecordError(batchIndex={e.index}, message='{e.message}')" for e in errors[:_SHOWN_MAX])
    text = (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )
    return ApiError(ErrorCode.INVALID_RECORD, text, tuple(errors))


def _recompress(batch: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> bytearray:
    assert config.codec is not None
    return build_batch(
        records(batch),
        base_offset=header.base_offset,
        codec=config.codec,
        level=config.codec_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.leader_epoch,
        transactional=header.is_transactional,
        log_append_time=now_ms if config.log_append_time else None,
    )
