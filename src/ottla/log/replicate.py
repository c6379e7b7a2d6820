"""A follower's append of a leader's batches: unchanged, with offsets and epochs, in as few writes as possible, mostly
one for a whole fetch response.

Markers, and the first batch of an epoch or of a segment, are appended one by one (`append`): they change more than the
file.
"""

from __future__ import annotations

from ottla.log import cut
from ottla.log.append import append_trusted, is_full, put
from ottla.log.files.disk import StorageError
from ottla.log.files.segment import Segment
from ottla.log.producers.producers import Origin
from ottla.log.state import LogState
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.model.limits import INT32_MAX
from ottla.records.batch import CONTROL_FLAG, BatchHeader, check, headers


def append(log: LogState, records: bytes | memoryview, leader_epoch: LeaderEpoch, now_ms: int) -> int:
    """Append the batches behind the end of the log, up to one of an epoch above `leader_epoch`; return their bytes."""
    start = log.next_offset
    view = memoryview(records)
    run = _Run(log, view)
    taken = 0
    try:
        for at, header in headers(view):
            if header.last_offset < start:
                continue  # it is in the log already: two fetches returned it
            if header.leader_epoch > leader_epoch:
                break  # it is of a leader that this replica does not follow yet
            check(view, at, header)
            if header.base_offset < start == log.log_start_offset:
                # An empty log begins where the leader's does, which may be within a batch: the leader sends that batch
                # whole.
                cut.start_anew(log, header.base_offset, now_ms)
            taken += header.size_bytes
            if run.takes(header, now_ms):
                run.add(at, header)
            else:
                run.write()
                batch = view[at : at + header.size_bytes]
                append_trusted(log, batch, header, leader_epoch, now_ms, Origin.REPLICATION, -1)
        run.write()
    except (ApiError, StorageError):
        if log.next_offset > start:
            cut.truncate_to(log, start, now_ms)
        raise
    return taken


class _Run:
    """Adjacent batches of the response that will also be adjacent in the segment, not yet written."""

    def __init__(self, log: LogState, view: memoryview) -> None:
        self._log = log
        self._view = view
        self._batches: list[BatchHeader] = []
        self._start = self._end = 0  # positions in the view
        self._segment: Segment = log.active

    def takes(self, header: BatchHeader, now_ms: int) -> bool:
        log, segment = self._log, self._log.active
        next_offset = self._batches[-1].next_offset if self._batches else log.next_offset
        if header.base_offset < next_offset:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Unexpected offset in append to {log.name}. First offset {header.base_offset} is less than the next "
                f"offset {next_offset}.",
            )
        last = header.last_offset
        return not (
            (header.attributes & CONTROL_FLAG and header.producer_id >= 0)
            or header.leader_epoch != log.epochs.latest
            or not segment.file.size
            or last - segment.base_offset > INT32_MAX
            or is_full(log, segment, self._end - self._start + header.size_bytes, last, header.max_timestamp, now_ms)
        )

    def add(self, at: int, header: BatchHeader) -> None:
        if not self._batches:
            self._start = at
            self._segment = self._log.active
        self._batches.append(header)
        self._end = at + header.size_bytes

    def write(self) -> None:
        if not self._batches:
            return
        log, segment = self._log, self._segment
        position = put(log, segment, self._view[self._start : self._end], self._batches[0].base_offset)
        for header in self._batches:
            segment.note(position, header.size_bytes, header.last_offset, header.max_timestamp)
            position += header.size_bytes
            if header.producer_id >= 0 and not header.attributes & CONTROL_FLAG:
                if segment.offsets.count >= log.mark_due:
                    log.mark(header.base_offset)
                log.producers.update(header, header.base_offset, header.max_timestamp)
        log.next_offset = self._batches[-1].next_offset
        self._batches = []
        self._start = self._end = 0
