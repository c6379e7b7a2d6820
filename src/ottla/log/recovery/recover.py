"""Recovers a partition directory when it is opened.

After a clean stop nothing is scanned: indexes are used as they are, the producers come from the snapshot at the end of
the log (and a few headers, see `recall`), if the log still ends where it was closed (`clean_close_check`). After a
crash, in this order:

1. Leftovers: `.deleted` and `.cleaned` files are removed; complete `.swap` segments replace the originals they were
   compacted from.
2. Segments that end at or below the recovery point are trusted (they were synced with their indexes before it moved).
3. The others are scanned: every batch above the recovery point must be whole, in order and have the right CRC. The
   first batch that is not ends the log; everything behind it is truncated. Missing offsets are no damage, except where
   they are known to have existed (`seams`, and logs that are dense by nature). Indexes, leader epochs, producers and
   the transaction index are rebuilt on the way.
4. Producers begin with the newest sound snapshot at or below the first scanned segment, and all batches from there on
   are replayed.

The beginning of a log may be superfluous, as that of the metadata log is because of its snapshots: damage below
`spare_below` does not end such a log. The damaged part is left as it is, and everything is checked as if nothing were
synced.

This module only determines the valid content; `Log` continues with the `Recovered` that it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.epochs import Epochs
from ottla.log.files.disk import DamagedError, Directory
from ottla.log.files.names import LOG, TEMPORARY, parse_name
from ottla.log.files.scan import ScannedBatch, find_batch, is_sound, scan
from ottla.log.files.segment import Segment
from ottla.log.files.txn_index import AbortedTxn
from ottla.log.producers.producers import Producers
from ottla.log.producers.recall import recall
from ottla.log.producers.replay import replay
from ottla.log.producers.snapshot import Snapshots
from ottla.log.recovery import clean_close_check, leftovers
from ottla.log.recovery.seams import Seams
from ottla.model.limits import INT32_MAX, MIB
from ottla.records.batch import CONTROL_FLAG, HEADER_BYTES, read_header
from ottla.records.control import read_marker

Progress = Callable[[int, int], None]

# Progress is reported after this many bytes; a scan reads a few hundred MB per second.
_PROGRESS_BYTES = 64 * MIB


class Recovered(NamedTuple):
    segments: list[Segment]  # possibly empty
    next_offset: int
    scanned_from: int  # number of the first segment that had to be scanned
    cut_bytes: int


def recover(
    directory: Directory,
    config: LogConfig,
    epochs: Epochs,
    producers: Producers,
    snapshots: Snapshots,
    seams: Seams,
    *,
    now_ms: int,
    recovery_point: int,
    spare_below: int,
    clean: bool,
    progress: Progress | None,
) -> Recovered:
    names = leftovers.settle(directory, config, now_ms)
    bases = sorted(found[0] for found in map(parse_name, names) if found is not None and found[1:] == (LOG, ""))
    snapshots.discover(names)
    seams.discover(names)
    # After a loss of power an empty or missing checkpoint proves nothing: then the epochs come from the batches, too.
    epochs_sound = epochs.load() and (clean or bool(epochs.entries))
    interval, index_bytes = config.index_interval_bytes, config.index_bytes
    segments = [
        Segment(directory, base, interval_bytes=interval, index_bytes=index_bytes, now_ms=now_ms) for base in bases
    ]
    sound = [segment.load() for segment in segments]
    # The first segment that must be scanned; all later ones are scanned as well, so that the replay sees them in order.
    first = next((i for i, ok in enumerate(sound) if not ok), len(segments))
    if not clean:
        # A segment that begins at the recovery point proves nothing about the one before: a roll after a sync writes
        # the old segment's indexes, and only the next sync makes them durable.
        first = min(first, max(sum(base < recovery_point for base in bases) - 1, 0))
    if not epochs_sound:
        first = 0
    end = None
    if clean and segments:
        first, end = clean_close_check.check(segments, first, snapshots, spare_below)
    recovery = _Recovery(
        config, epochs, producers, snapshots, seams, recovery_point, spare_below, progress, epochs_sound=epochs_sound
    )
    result = recovery.run(segments, first, end, clean=clean, now_ms=now_ms)
    snapshots.keep((segment.base_offset for segment in result.segments), result.next_offset)
    # The scanned segments, except for the last, have not been synced as a whole yet.
    seams.keep([segment.base_offset for segment in result.segments[result.scanned_from + 1 :]])
    return result


class _Recovery:
    def __init__(
        self,
        config: LogConfig,
        epochs: Epochs,
        producers: Producers,
        snapshots: Snapshots,
        seams: Seams,
        recovery_point: int,
        spare_below: int,
        progress: Progress | None,
        *,
        epochs_sound: bool,
    ) -> None:
        self._config = config
        self._epochs_sound = epochs_sound
        self._epochs = epochs
        self._producers = producers
        self._snapshots = snapshots
        self._seams = seams
        self._recovery_point = recovery_point
        self._spare_below = spare_below
        self._believed_below = 0 if spare_below else recovery_point
        self._progress = progress
        self._done_bytes = 0
        self._total_bytes = 0

    def run(self, segments: list[Segment], first: int, end: int | None, *, clean: bool, now_ms: int) -> Recovered:
        """Recover the segments. `end` is where the log ends, if that is known."""
        if first < len(segments):
            scan_from = segments[first].base_offset
        elif end is None:
            scan_from = segments[-1].next_offset() if segments else 0
        else:
            scan_from = end
        snapshot = self._snapshots.take_newest(scan_from)
        if snapshot is not None:
            self._producers.restore(snapshot[1], now_ms, self._config.producer_expiration_ms)
            recall(self._producers, segments[:first], snapshot[0])
        self._total_bytes = sum(segment.size_bytes for segment in segments[first:])
        # A clean log without any snapshot has no producer that needs one (Kafka reads it the same way).
        if snapshot is not None or not clean:
            replay(self._producers, segments[:first], snapshot[0] if snapshot else 0, scan_from)
        next_offset, cut_bytes = scan_from, 0
        count = len(segments)
        epochs_before = self._epochs.entries
        if first < count:
            self._epochs.rewind(scan_from)
        believed = self._set_indexes_aside(segments, first)
        bases: list[int | None] = [segment.base_offset for segment in segments]
        for number in range(first, len(segments)):
            segment = segments[number]
            if segment.base_offset < next_offset or self._is_torn_off(segment, next_offset):
                cut_bytes += _drop(segments, number)
                break
            next_offset, cut = self._rebuild(segment, bases[number + 1] if number + 1 < count else None)
            cut_bytes += cut
            if cut:
                cut_bytes += _drop(segments, number + 1)
                break
        for segment in segments[first:-1]:
            segment.seal()
        for segment in believed:
            if segment in segments[:-1]:
                for file in segment.files():
                    file.sync()
                segment.move_indexes("")
        if cut_bytes or len(segments) < count:
            _make_last(segments)
        self._epochs.rewind(next_offset)
        if self._epochs.entries != epochs_before or not self._epochs_sound:
            self._epochs.write()
        return Recovered(segments, next_offset, first, cut_bytes)

    def _set_indexes_aside(self, segments: list[Segment], first: int) -> list[Segment]:
        """Return segments below the recovery point that are rebuilt all the same, because an index is damaged.

        The next start would trust their indexes; so these are built under another name and renamed when they are on
        disk. Otherwise a loss of power now could leave half an index that is trusted.
        """
        pairs = zip(segments[first:], segments[first + 1 :], strict=False)
        believed = [segment for segment, following in pairs if following.base_offset < self._recovery_point]
        for segment in believed:
            segment.move_indexes(TEMPORARY)
        if believed:
            believed[0].directory.sync()
        return believed

    def _is_torn_off(self, segment: Segment, next_offset: int) -> bool:
        """Whether the segment before lost its end, exactly between two batches, when the power failed."""
        if segment.base_offset <= max(next_offset, self._recovery_point):
            return False
        if self._config.dense and next_offset < self._spare_below:
            raise DamagedError(f"{segment.file.path} begins where {next_offset} should be")
        return self._config.dense or segment.base_offset in self._seams

    def _rebuild(self, segment: Segment, following: int | None) -> tuple[int, int]:
        """Scan one segment, cut it at the first bad batch, rebuild derived data; return (next offset, bytes cut)."""
        if segment.base_offset not in self._snapshots.offsets and segment.base_offset > 0:
            self._snapshots.write(segment.base_offset, self._producers.snapshot())
        segment.reset_indexes()
        size, before = segment.size_bytes, self._done_bytes
        next_offset, end = self._scan(segment, segment.base_offset, 0, following)
        if end < size and next_offset < self._spare_below:
            next_offset, end = self._pass_by(segment, next_offset, end, following)
        self._done_bytes = before + size
        if self._progress is not None:
            self._progress(self._done_bytes, self._total_bytes)
        if end < size:
            segment.file.truncate(end)
        return next_offset, size - end

    def _pass_by(self, segment: Segment, next_offset: int, end: int, following: int | None) -> tuple[int, int]:
        """Continue behind the damage at `end`, with the first batch that is needed."""
        needed = self._spare_below
        if following is not None and following <= needed:
            return following, segment.size_bytes
        position = find_batch(segment.file, end, needed)
        if position is not None:
            return self._scan(segment, needed, position, following)
        if following is not None:
            raise DamagedError(
                f"{segment.file.path} is damaged at offset {next_offset}, and what was at {needed} is not found"
            )
        return next_offset, end  # the log never got that far

    def _scan(self, segment: Segment, next_offset: int, end: int, following: int | None) -> tuple[int, int]:
        """Scan from position `end`, where `next_offset` should be; return where the last sound batch ends."""
        before = self._done_bytes
        for batch in scan(segment.file, end, segment.size_bytes, whole=True):
            header = batch.header
            if header.last_offset_delta < 0 or self._is_out_of_place(batch, next_offset, segment, following):
                break
            if not self._is_sound(batch):
                break
            next_offset = header.next_offset
            end = batch.position + header.size_bytes
            segment.note(batch.position, header.size_bytes, header.last_offset, header.max_timestamp)
            self._epochs.assign_quietly(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._apply(segment, batch)
            if self._progress is not None and before + end - self._done_bytes >= _PROGRESS_BYTES:
                self._done_bytes = before + end
                self._progress(self._done_bytes, self._total_bytes)
        return next_offset, end

    def _is_out_of_place(self, batch: ScannedBatch, next_offset: int, segment: Segment, following: int | None) -> bool:
        """Whether the base offset, which the CRC does not cover, cannot be the one that was written."""
        header = batch.header
        if header.base_offset < next_offset or header.last_offset - segment.base_offset > INT32_MAX:
            return True
        if header.base_offset == next_offset or header.base_offset < self._believed_below:
            return False
        # A gap. The batch behind it tells whether it was always there: offsets ascend.
        if self._config.dense or (following is not None and header.last_offset >= following):
            return True
        behind = batch.at + header.size_bytes
        if (
            len(batch.data) - behind >= HEADER_BYTES
            and read_header(batch.data, behind).base_offset > header.last_offset
        ):
            return False
        behind = batch.position + header.size_bytes
        after = next(scan(segment.file, behind, segment.size_bytes, whole=True, read_bytes=HEADER_BYTES), None)
        return after is not None and after.header.base_offset <= header.last_offset and is_sound(after)

    def _is_sound(self, batch: ScannedBatch) -> bool:
        return batch.header.next_offset <= self._believed_below or is_sound(batch)

    def _apply(self, segment: Segment, batch: ScannedBatch) -> None:
        header, producers = batch.header, self._producers
        if not header.attributes & CONTROL_FLAG:
            producers.update(header, header.base_offset, header.max_timestamp)
            return
        marker = read_marker(batch.data, batch.at)
        if marker is None:
            return
        completed = producers.end_transaction(header, marker, header.base_offset, header.max_timestamp)
        if completed is not None and completed.aborted:
            stable = producers.last_stable_offset(completed)
            entry = AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            segment.aborted.append(entry)


def _make_last(segments: list[Segment]) -> None:
    """Sync the truncation, lest truncated bytes come back between newer records after a loss of power."""
    if segments:
        segments[-1].file.sync()
        segments[-1].directory.sync()


def _drop(segments: list[Segment], first: int) -> int:
    """Remove the segments behind the end of the log; return their bytes."""
    dropped = sum(segment.size_bytes for segment in segments[first:])
    for segment in reversed(segments[first:]):
        segment.remove()
    del segments[first:]
    return dropped
