"""Acquiring records of a share partition for one ShareFetch: which records, and the batches that contain them.

For most groups only batch headers are read: whole batches are acquired, and the answer is a range of the file. If
records must be inspected first (key order, delayed delivery), they are, in bounded pieces ahead of what is acquired;
then the answer consists of the batches that contain the acquired records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.log.files.disk import Cold, FileSlice
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.records.batch import HEADER_BYTES, BatchHeader, read_header
from ottla.records.record import records
from ottla.replica.partition import READ_COMMITTED, READ_UNCOMMITTED
from ottla.server.shares.live_partition import LivePartition
from ottla.server.shares.share_partitions import SharePartitions
from ottla.server.shares.taken_records import NOTHING, Taken
from ottla.shares.partition.data_batches import spans
from ottla.shares.partition.delivery_delay import due_ms
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import AcquiredRange, Want

# Large enough for the headers of many small batches, small enough to be cheap for a large one.
_PIECE_BYTES = 4 * limits.KIB


class _Place(NamedTuple):
    """A batch header and its position in the file."""

    header: BatchHeader
    position: int


def take(owner: SharePartitions, live: LivePartition, want: Want, max_bytes: int, now_ms: int) -> Taken:
    """Acquire the records that are available. Raises ApiError and StorageError, as reading does."""
    state = live.ready(now_ms)
    if state.rules.inspects:
        _inspect(live, state, want, now_ms)
        taken = _take_ready(live, state, want, max_bytes, now_ms)
    else:
        taken = _take_next(owner, live, state, want, max_bytes, now_ms)
    owner.bury(live)
    if taken.acquired:
        live.wake_at(now_ms + state.rules.lock_ms)
    else:
        live.wake_at(state.next_due_ms(now_ms))
    return taken


def missing(live: LivePartition, now_ms: int) -> Cold | None:
    """Return the range that has to be read from the disk before records can be acquired; None if there is none or on an
    error.
    """
    state = live.ready(now_ms)
    if not state.can_acquire(now_ms):
        return None
    slice_ = None
    try:
        slice_ = _next_slice(live, state.scanned if state.rules.inspects else state.next_offset(now_ms))
    except Cold as cold:
        return cold
    except ApiError:
        pass  # the following read raises the same error
    if slice_ is None or slice_.file.is_warm(slice_.position, slice_.size_bytes):
        return None
    return Cold(slice_.file, slice_.position, slice_.size_bytes)


def _next_slice(live: LivePartition, offset: int) -> FileSlice | None:
    """Return roughly the slice from an offset on. If the log has the position in memory, no index is searched."""
    partition = live.partition
    segment = partition.log.active
    if offset < segment.recent_start:
        isolation = live.rules.isolation
        return partition.fetch(offset, limits.COLD_READ_BYTES, isolation=isolation, patient=False).records
    place = segment.find(offset)
    if place is None:
        return None
    return FileSlice(segment.file, place[0], min(segment.file.size - place[0], limits.COLD_READ_BYTES))


def waiting_bytes(live: LivePartition, max_bytes: int, now_ms: int) -> int:
    """Return roughly how many bytes could be acquired, for the comparison with `min_bytes`."""
    state = live.ready(now_ms)
    if not state.can_acquire(now_ms):
        return 0
    fetched = live.partition.fetch(state.next_offset(now_ms), max_bytes, isolation=live.rules.isolation)
    return 0 if fetched.records is None else len(fetched.records)


# --- by headers


def _take_next(
    owner: SharePartitions, live: LivePartition, state: SharePartition, want: Want, max_bytes: int, now_ms: int
) -> Taken:
    isolation = live.rules.isolation
    for _ in range(limits.SHARE_SKIPS_PER_FETCH_MAX):
        if not state.can_acquire(now_ms):
            return NOTHING
        offset = state.next_offset(now_ms)
        if offset < live.partition.log.active.recent_start:
            max_bytes = min(max_bytes, limits.COLD_READ_BYTES)  # `missing` has made sure that so much is in memory
        fetched = live.partition.fetch(offset, max_bytes, isolation=isolation)
        slice_ = fetched.records
        if slice_ is None:
            return NOTHING
        places: list[_Place] = []
        aborted = fetched.aborted if isolation == READ_COMMITTED else ()
        acquired = state.acquire(spans(_noted(slice_, places), aborted), offset, want, now_ms)
        if acquired:
            return Taken(acquired, _covering(slice_, places, acquired))
        if state.next_offset(now_ms) == offset:
            return NOTHING
    owner.look_soon(live)
    return NOTHING


def _noted(slice_: FileSlice, places: list[_Place]) -> Iterator[BatchHeader]:
    for place in _walk(slice_):
        places.append(place)
        yield place.header


def _walk(slice_: FileSlice) -> Iterator[_Place]:
    """Yield the complete batches of a slice, reading only their headers."""
    position, end = slice_.position, slice_.position + slice_.size_bytes
    piece, begin = b"", position
    while end - position >= HEADER_BYTES:
        if position + HEADER_BYTES > begin + len(piece):
            piece, begin = slice_.file.read(position, min(_PIECE_BYTES, end - position)), position
        header = read_header(piece, position - begin)
        if header.size_bytes > end - position:
            return
        yield _Place(header, position)
        position += header.size_bytes


def _covering(slice_: FileSlice, places: list[_Place], acquired: list[AcquiredRange]) -> FileSlice:
    """Return the range of the file from the batch of the first acquired record to that of the last one."""
    first = next(place for place in places if place.header.last_offset >= acquired[0].first)
    last = next(place for place in reversed(places) if place.header.base_offset <= acquired[-1].last)
    return FileSlice(slice_.file, first.position, last.position + last.header.size_bytes - first.position)


# --- by records


def _inspect(live: LivePartition, state: SharePartition, want: Want, now_ms: int) -> None:
    """Inspect records ahead until there are enough to acquire, or up to the limit of one fetch."""
    partition, isolation = live.partition, live.rules.isolation
    left_bytes = limits.SHARE_INSPECT_BYTES
    while left_bytes > 0 and state.room > 0 and state.delayed < limits.SHARE_DELAYED_RECORDS_MAX:
        if state.ready(want, now_ms).enough:
            return
        fetched = partition.fetch(state.scanned, left_bytes, isolation=isolation)
        slice_ = fetched.records
        if slice_ is None:
            return
        places: list[_Place] = []
        aborted = fetched.aborted if isolation == READ_COMMITTED else ()
        for span in spans(_noted(slice_, places), aborted):
            place = places[-1]
            left_bytes -= place.header.size_bytes
            state.inspect(span.first, span.last, _notices(slice_, place) if span.data else (), now_ms)
            if state.room <= 0 or state.delayed >= limits.SHARE_DELAYED_RECORDS_MAX:
                return
        if not places:
            return


def _notices(slice_: FileSlice, place: _Place) -> list[tuple[int, bytes | None, int]] | None:
    """Return offset, key and due time of each record; None for a batch that is invalid, or so large that inspecting it
    would delay other requests.
    """
    if place.header.count > limits.SHARE_INSPECT_RECORDS:
        return None
    batch = slice_.file.read(place.position, place.header.size_bytes)
    most_bytes = limits.LOOKED_INTO_RATIO_MAX * limits.SHARE_INSPECT_BYTES
    try:
        return [(record.offset, record.key, due_ms(record)) for record in records(batch, limit_bytes=most_bytes)]
    except ApiError:
        return None


def _take_ready(live: LivePartition, state: SharePartition, want: Want, max_bytes: int, now_ms: int) -> Taken:
    runs: list[tuple[int, int]] = []
    parts: list[FileSlice] = []
    size_bytes, covered = 0, -1
    for first, last in state.ready(want, now_ms).runs:
        offset = max(first, covered + 1)
        while offset <= last:
            place = _batch_at(live, offset, max_bytes)
            if place is None or (parts and size_bytes + place[1].size_bytes > max_bytes):
                break
            header, part = place
            if header.base_offset > offset:
                state.bury(offset, min(header.base_offset - 1, last))  # removed by compaction
            covered = header.last_offset
            offset = covered + 1
            if header.base_offset <= last:
                size_bytes += part.size_bytes
                _extend(parts, part)
        if covered < first:
            break
        runs.append((first, min(last, covered)))
        if covered < last:
            break
    if not runs:
        return NOTHING
    acquired = state.take(runs, want, now_ms)
    return Taken(acquired, parts[0] if len(parts) == 1 else b"".join(part.read() for part in parts))


def _batch_at(live: LivePartition, offset: int, max_bytes: int) -> tuple[BatchHeader, FileSlice] | None:
    """Return the batch that contains `offset`, or the next one if compaction removed it."""
    slice_ = live.partition.fetch(offset, max_bytes, isolation=READ_UNCOMMITTED).records
    if slice_ is None:
        return None
    header = read_header(slice_.file.read(slice_.position, HEADER_BYTES))
    return header, FileSlice(slice_.file, slice_.position, header.size_bytes)


def _extend(parts: list[FileSlice], part: FileSlice) -> None:
    """Append a slice; merge it with the last one if they are adjacent in the file."""
    last = parts[-1] if parts else None
    if last is not None and last.file is part.file and last.position + last.size_bytes == part.position:
        parts[-1] = FileSlice(last.file, last.position, last.size_bytes + part.size_bytes)
    else:
        parts.append(part)
