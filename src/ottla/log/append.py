"""The append of a batch to the log: the hot path. One header read, one CRC, one stamp, one write; nothing per record.

Every check that can refuse the batch comes before the first change, and the write of the batch comes before the
bookkeeping that cannot fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.log import cut
from ottla.log.files.disk import Buffer, StorageError
from ottla.log.files.segment import Segment
from ottla.log.files.txn_index import AbortedTxn
from ottla.log.producers.producers import CompletedTxn, Origin
from ottla.log.state import LogState
from ottla.log.validate import Batch, check_size, validate
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.model.limits import INT32_MAX
from ottla.records.batch import (
    CONTROL_FLAG,
    HEADER_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    check,
    check_client,
    check_length,
    headers,
    read_header,
    stamp,
    stamp_log_append_time,
)
from ottla.records.control import EndTxnMarker, read_marker

if TYPE_CHECKING:
    from ottla.log.inspection import Findings, Placed
    from ottla.log.look import Look


_new = tuple.__new__


class Appended(NamedTuple):
    """The result of an append.

    `log_append_time` is -1 if the producer's own timestamps count; `placed` are records of the batch that its inspector
    has put into other partitions, and that must be stored before the batch is acknowledged.
    """

    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    max_timestamp: int
    duplicate: bool
    leader_epoch: LeaderEpoch
    placed: tuple[Placed, ...] = ()


def append_one(
    log: LogState, records: bytearray | memoryview, leader_epoch: LeaderEpoch, now_ms: int, look: Look | None = None
) -> Appended:
    """Append one batch of a client; `look` is the result of a look into it, if one was taken already."""
    if len(records) < HEADER_BYTES:
        raise ApiError(ErrorCode.INVALID_RECORD, f"Record batch has no batches at all in topic partition {log.name}")
    header = read_header(records)
    if look is None:  # a look has checked the batch already
        check(records, 0, header)
        check_client(header)
    size_bytes = header.length + PREFIX_BYTES
    if size_bytes != len(records):
        records = _first_only(records, size_bytes)
    if size_bytes > log.batch_bytes_max:
        check_size(size_bytes, log.config, log.name)
    config = log.config
    findings = None
    placed: tuple[Placed, ...] = ()
    if not log.header_enough or header.max_timestamp - now_ms > config.timestamp_after_max_ms:
        records, header, findings = validate(records, header, config, now_ms, log.name, look)
        size_bytes = header.length + PREFIX_BYTES
    offset = log.next_offset
    max_timestamp = header.max_timestamp
    idempotent = header.producer_id >= 0
    if idempotent:
        original = log.producers.check(header, offset, Origin.CLIENT)
        if original is not None:
            first, last, time = original.first_offset, original.last_offset, original.timestamp
            placed = findings.decide_again(first) if findings is not None else ()
            return Appended(first, last, time, log.log_start_offset, time, True, leader_epoch, placed)
    if findings is not None:
        records, header, placed = _decided(log, findings, records, header, offset, now_ms)
        size_bytes = header.length + PREFIX_BYTES
    stamp(records, 0, offset, leader_epoch)
    last = offset + header.last_offset_delta
    segment = log.active
    if (
        segment.file.size + size_bytes > config.segment_bytes
        or max_timestamp - segment.first_timestamp > log.roll_ms
        or segment.full
        or max_timestamp < 0
        or last - segment.base_offset > INT32_MAX
    ) and is_full(log, segment, size_bytes, last, max_timestamp, now_ms):
        segment = log.roll(now_ms)
    if leader_epoch != log.epochs.latest:
        log.begin_epoch(leader_epoch, offset)
    if log.directory.disk.slow or log.unwritten:
        segment.note(put(log, segment, records, offset), size_bytes, last, max_timestamp)
    else:
        segment.append(records, size_bytes, last, max_timestamp)
    log.next_offset = last + 1
    if idempotent:
        if segment.offsets.count >= log.mark_due:
            log.mark(offset)
        log.producers.update(header, offset, max_timestamp)
    append_time = max_timestamp if config.log_append_time else -1
    # Calling the constructor of a NamedTuple would cost more than the rest of this line.
    return _new(Appended, (offset, last, append_time, log.log_start_offset, max_timestamp, False, leader_epoch, placed))


def _decided(
    log: LogState, findings: Findings, batch: Batch, header: BatchHeader, offset: int, now_ms: int
) -> tuple[Batch, BatchHeader, tuple[Placed, ...]]:
    """Return the batch to write at `offset` by the inspector's findings, and the records put into other partitions."""
    try:
        changed, placed = findings.decide(offset)
    except ApiError as error:
        if error.code.retriable and header.producer_id >= 0:
            log.producers.note_refusal(header)
        raise
    if changed is None:
        return batch, header, placed
    if log.config.log_append_time:
        stamp_log_append_time(changed, 0, now_ms)
    return changed, read_header(changed), placed


def put(log: LogState, segment: Segment, data: Buffer, first_offset: int) -> int:
    """Write batches at the end of the segment, or queue them for a worker; return their file position."""
    file = segment.file
    position = file.size
    if log.unwritten or (log.directory.disk.slow and log.may_wait()):
        file.append_later(data)
        log.unwritten.add(file, first_offset)
    else:
        file.append(data)
    return position


def _first_only(records: bytearray | memoryview, size_bytes: int) -> memoryview:
    """Return the first batch alone: an incomplete second one is ignored as in Kafka, a complete one refused."""
    more = check_length(records, size_bytes)
    if more is not None and more <= len(records) - size_bytes:
        raise ApiError(ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
    return memoryview(records)[:size_bytes]


def is_full(
    log: LogState, segment: Segment, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """Whether the batch must go into a new segment; `append_one` makes a quicker test first."""
    size = segment.file.size
    if not size:
        return False
    if size + size_bytes > log.config.segment_bytes or last_offset - segment.base_offset > INT32_MAX or segment.full:
        return True
    first = segment.first_timestamp
    age_ms = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
    return age_ms > log.roll_ms


def append_several(
    log: LogState,
    records: bytearray | memoryview,
    leader_epoch: LeaderEpoch,
    now_ms: int,
    origin: Origin,
    transaction_version: int,
) -> Appended:
    """Append batches of a coordinator (they get offsets here) or of a leader (they have theirs); all or none."""
    start = log.next_offset
    view = memoryview(records)
    found = list(headers(view))
    if not found:
        raise ApiError(ErrorCode.INVALID_RECORD, f"Record batch has no batches at all in topic partition {log.name}")
    appended = None
    try:
        for at, header in found:
            check(view, at, header)
            batch = view[at : at + header.size_bytes]
            appended = append_trusted(log, batch, header, leader_epoch, now_ms, origin, transaction_version)
    except (ApiError, StorageError):
        if log.next_offset > start:
            cut.truncate_to(log, start, now_ms)
        raise
    assert appended is not None
    return appended._replace(first_offset=start if origin != Origin.REPLICATION else found[0][1].base_offset)


def append_trusted(
    log: LogState,
    batch: memoryview,
    header: BatchHeader,
    leader_epoch: LeaderEpoch,
    now_ms: int,
    origin: Origin,
    transaction_version: int,
) -> Appended:
    offset = log.next_offset
    if origin == Origin.REPLICATION:
        if header.base_offset < offset:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Unexpected offset in append to {log.name}. First offset {header.base_offset} is less than the next "
                f"offset {offset}.",
            )
        offset, leader_epoch = header.base_offset, header.leader_epoch
    else:
        check_size(header.size_bytes, log.config, log.name)
        if log.config.log_append_time:
            stamp_log_append_time(batch, 0, now_ms)
            header = read_header(batch)
    marker = read_marker(batch) if header.attributes & CONTROL_FLAG and header.producer_id >= 0 else None
    if marker is not None:
        log.producers.check_marker(header, marker, offset, origin, transaction_version)
    elif header.producer_id >= 0:
        log.producers.check(header, offset, origin)
    if origin != Origin.REPLICATION:
        stamp(batch, 0, offset, leader_epoch)
    last = offset + header.last_offset_delta
    segment = log.active
    if last - segment.base_offset > INT32_MAX:
        # The gap (from compaction on the leader) exceeds a relative offset: the new segment begins behind it.
        log.next_offset = offset
        segment = log.roll(now_ms)
    elif is_full(log, segment, header.size_bytes, last, header.max_timestamp, now_ms):
        segment = log.roll(now_ms)
    if leader_epoch != log.epochs.latest:
        log.begin_epoch(leader_epoch, offset)
    if marker is not None:
        _append_marker(log, segment, batch, header, marker, offset)
    else:
        segment.note(put(log, segment, batch, offset), header.size_bytes, last, header.max_timestamp)
        if header.producer_id >= 0 and not header.attributes & CONTROL_FLAG:
            if segment.offsets.count >= log.mark_due:
                log.mark(offset)
            log.producers.update(header, offset, header.max_timestamp)
    log.next_offset = last + 1
    append_time = header.max_timestamp if log.config.log_append_time else -1
    return Appended(offset, last, append_time, log.log_start_offset, header.max_timestamp, False, leader_epoch)


def _append_marker(
    log: LogState, segment: Segment, batch: memoryview, header: BatchHeader, marker: EndTxnMarker, offset: int
) -> None:
    """Append a marker; an aborted transaction is added to the index before its marker is in the log.

    Readers of the marker must find it there.
    """
    completed: CompletedTxn | None = log.producers.completion(header, marker, offset)
    if completed is not None and completed.aborted:
        stable = log.producers.last_stable_offset(completed)
        segment.aborted.append(AbortedTxn(completed.producer_id, completed.first_offset, offset, stable))
    try:
        position = put(log, segment, batch, offset)
    except StorageError:
        segment.aborted.truncate(offset)
        raise
    segment.note(position, header.size_bytes, offset + header.last_offset_delta, header.max_timestamp)
    if segment.offsets.count >= log.mark_due:
        log.mark(offset)
    log.producers.end_transaction(header, marker, offset, header.max_timestamp)
