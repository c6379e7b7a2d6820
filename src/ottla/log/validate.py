"""The checks of a batch for this log, besides its structure (which `records.batch` checks) and its sequence
(`producers`).

Most batches are checked by their headers alone. The records are looked at (`look`) only if the answer depends on them.
A batch whose header has a timestamp too far ahead is refused without a look: even if only the header is wrong, the
batch could not be found by its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log.config import LogConfig
from ottla.log.look import TIME_REFUSED, Look, bounds, may_be_needed, needed, out_of_range, unpacked_bytes_max
from ottla.model.errors import ApiError, ErrorCode, RecordError
from ottla.records.batch import BatchHeader, read_header, stamp_log_append_time, stamp_max_timestamp

if TYPE_CHECKING:
    from ottla.log.inspection import Findings

Batch = bytearray | memoryview


def header_is_enough(config: LogConfig) -> bool:
    """Whether batches within the upper time bound need no further check under these settings."""
    return not may_be_needed(config) and not config.log_append_time


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
    batch: Batch, header: BatchHeader, config: LogConfig, now_ms: int, name: str, look: Look | None
) -> tuple[Batch, BatchHeader, Findings | None]:
    """Check a batch that its header alone does not settle.

    Return the batch to write (rewritten if the topic's settings require it), its header, and the inspector's findings.
    `look` is one that was taken before, or None.
    """
    findings = None
    if not config.log_append_time and header.max_timestamp - now_ms > config.timestamp_after_max_ms:
        raise _dated_ahead(header, config, now_ms)
    if needed(config, header):
        if look is None or look.config is not config:
            look = Look(batch, header, config, now_ms, name, unpacked_bytes_max(header.size_bytes)).whole()
        if look.refusal is not None:
            raise look.refusal
        findings = look.findings
        if look.rewritten is not None:
            batch, header = look.rewritten, read_header(look.rewritten)
            check_size(header.size_bytes, config, name)
        elif look.max_timestamp != header.max_timestamp and not config.log_append_time:
            stamp_max_timestamp(batch, 0, look.max_timestamp)
            header = read_header(batch)
    if config.log_append_time:
        stamp_log_append_time(batch, 0, now_ms)
        header = read_header(batch)
    return batch, header, findings


def _dated_ahead(header: BatchHeader, config: LogConfig, now_ms: int) -> ApiError:
    """Return the error for timestamps too far ahead.

    Kafka names the records; for a single record that is known, for others a look may find them.
    """
    if header.count == 1:
        told = RecordError(0, out_of_range(header.max_timestamp, header.base_offset, config, now_ms))
        return ApiError(ErrorCode.INVALID_TIMESTAMP, TIME_REFUSED, (told,))
    text = f"{TIME_REFUSED}: the largest of the batch is {header.max_timestamp}. {bounds(config, now_ms)}"
    return ApiError(ErrorCode.INVALID_TIMESTAMP, text)
