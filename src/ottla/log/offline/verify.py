"""Checks a data directory offline, ours or a real Kafka's: every batch, every index, the small files.

Rules:
- Nothing is changed; see `dump`. A problem that opening the log would repair is a WARNING, any other is an ERROR
  (`findings`).
- A running broker's directory may be checked too, but its active segments change meanwhile and look torn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ottla.log.files.checkpoint import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    CheckpointError,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
)
from ottla.log.files.disk import Directory, Disk, StorageError
from ottla.log.files.names import SNAPSHOT, STRAY_DIRECTORY, file_name, parse_directory
from ottla.log.offline import dump
from ottla.log.offline.findings import Finding, FindingKind, Severity, VerifyTotals
from ottla.log.offline.verify_segment import SegmentCheck
from ottla.log.producers.snapshot import SnapshotError
from ottla.log.recovery.leftovers import is_deleted_directory
from ottla.model.ids import TopicPartition

# Files of the metadata quorum that lie beside its segments.
_QUORUM_FILES = ("quorum-state", "quorum-state.tmp")
_METADATA_SNAPSHOT = ".checkpoint"


class HeldOffsets(NamedTuple):
    """The offsets that a partition directory holds: [start, end)."""

    start: int
    end: int


def verify(
    disk: Disk, *, deep: bool = True, partitions: list[str] | None = None, totals: VerifyTotals | None = None
) -> Iterator[Finding]:
    """Check a whole data directory, or the given partition directories.

    `deep` also checks the records inside the batches.
    """
    totals = VerifyTotals() if totals is None else totals
    unclean = not disk.exists(CLEAN_SHUTDOWN)
    ranges: dict[str, HeldOffsets] = {}
    starts = _log_starts(disk)
    for name in dump.partition_directories(disk) if partitions is None else partitions:
        if partitions is None and is_deleted_directory(name):
            continue  # the next start removes it; it is no longer in the checkpoints
        start = starts.get(TopicPartition(*found), 0) if (found := parse_directory(name)) else 0
        # Stray directories are never opened, and thereby recovered: they are as a crash left them.
        torn = unclean or name.endswith(STRAY_DIRECTORY)
        check = PartitionCheck(Directory(disk, name), totals, unclean=torn, deep=deep, log_start_offset=start)
        yield from check.run()
        ranges[name] = check.range
    if partitions is None:
        yield from _meta(disk)
        yield from _checkpoints(disk, ranges)


class PartitionCheck:
    """The check of one partition directory. After `run`, `range` says which offsets it holds."""

    def __init__(
        self, directory: Directory, totals: VerifyTotals, *, unclean: bool, deep: bool, log_start_offset: int = 0
    ) -> None:
        self._directory = directory
        self._totals = totals
        self._unclean = unclean
        self._deep = deep
        self._log_start_offset = log_start_offset
        self.range = HeldOffsets(0, 0)

    def run(self) -> Iterator[Finding]:
        self._totals.partitions += 1
        try:
            yield from self._run()
        except StorageError as error:
            yield Finding(Severity.ERROR, FindingKind.UNREADABLE, self._directory.path, None, str(error))

    def _run(self) -> Iterator[Finding]:
        files = dump.partition_files(self._directory)
        yield from self._names(files)
        epochs: list[tuple[int, int]] = []
        floor = files.segments[0] if files.segments else 0
        ceilings: list[int | None] = [*files.segments[1:], None]
        for base_offset, ceiling in zip(files.segments, ceilings, strict=False):
            segment = SegmentCheck(
                self._directory,
                base_offset,
                self._totals,
                floor=floor,
                ceiling=ceiling,
                mendable=ceiling is None and self._unclean,
                deep=self._deep,
            )
            yield from segment.run()
            floor = segment.next_offset
            epochs += [entry for entry in segment.epochs if not epochs or entry[0] != epochs[-1][0]]
        self.range = HeldOffsets(files.segments[0] if files.segments else 0, floor)
        # The metadata log starts at its oldest snapshot, which covers the records below.
        held = [int(name.partition("-")[0]) for name in files.others if name.endswith(_METADATA_SNAPSHOT)]
        yield from self._epochs(epochs, max(self._log_start_offset, min(held, default=0)))
        yield from self._snapshots(files.snapshots)
        yield from self._identity()

    def _names(self, files: dump.PartitionFiles) -> Iterator[Finding]:
        path = self._directory.path
        for name in files.leftovers:
            message = "a leftover of deletion or compaction; the next start settles it"
            yield Finding(Severity.NOTE, FindingKind.LEFTOVER, f"{path}/{name}", None, message)
        orphans = dict.fromkeys([*files.offset_indexes, *files.time_indexes, *files.txn_indexes])
        for base_offset in [base for base in orphans if base not in files.segments]:
            message = f"indexes at {base_offset} have no segment"
            yield Finding(
                Severity.WARNING, FindingKind.MISSING, f"{path}/{file_name(base_offset, '.log')}", None, message
            )
        for name in files.others:
            if name.endswith(_METADATA_SNAPSHOT):
                yield from _batch_file(self._directory, name)
            elif name not in (LEADER_EPOCHS, PARTITION_METADATA, *_QUORUM_FILES):
                message = "not a file of a partition"
                yield Finding(Severity.NOTE, FindingKind.UNKNOWN_FILE, f"{path}/{name}", None, message)

    def _epochs(self, seen: list[tuple[int, int]], log_start_offset: int) -> Iterator[Finding]:
        path = f"{self._directory.path}/{LEADER_EPOCHS}"
        try:
            known = dump.leader_epochs(self._directory)
        except CheckpointError as error:
            yield Finding(Severity.WARNING, FindingKind.CHECKPOINT, path, None, str(error))
            return
        for before, after in pairwise(known):
            if after[0] <= before[0] or after[1] < before[1]:
                message = f"epoch {after[0]} from {after[1]} comes after {before[0]} from {before[1]}"
                yield Finding(Severity.ERROR, FindingKind.EPOCH_ORDER, path, None, message)
        starts = dict(known)
        ends = [offset for _, offset in seen[1:]] + [self.range.end]
        for (epoch, begin), end in zip(seen, ends, strict=False):
            # Epochs below the log start are dropped, although its segment may still hold older records.
            offset = max(begin, log_start_offset)
            if offset < end and (epoch not in starts or starts[epoch] > offset):
                # When a follower adopts a log start, it changes the epochs before its own checkpoint.
                is_older = bool(known) and offset < known[0][1]
                severity = Severity.WARNING if self._unclean or is_older else Severity.ERROR
                message = f"offset {offset} is of epoch {epoch}, which {_where(starts.get(epoch))}"
                yield Finding(severity, FindingKind.CHECKPOINT, path, None, message)
        if known and known[-1][1] > self.range.end:
            message = f"epoch {known[-1][0]} begins at {known[-1][1]}, behind the end of the log at {self.range.end}"
            yield Finding(Severity.WARNING, FindingKind.CHECKPOINT, path, None, message)

    def _snapshots(self, offsets: list[int]) -> Iterator[Finding]:
        for offset in offsets:
            path = f"{self._directory.path}/{file_name(offset, SNAPSHOT)}"
            try:
                entries = dump.snapshot(self._directory, offset)
            except SnapshotError as error:
                yield Finding(Severity.WARNING, FindingKind.SNAPSHOT, path, None, str(error))
                continue
            if offset > self.range.end:
                # The last snapshot of a clean stop tells where the log ended.
                severity = Severity.WARNING if self._unclean else Severity.ERROR
                message = f"a snapshot behind the end of the log at {self.range.end}"
                yield Finding(severity, FindingKind.SNAPSHOT, path, None, message)
            for entry in entries:
                if max(entry.last_offset, entry.txn_first_offset) >= offset:
                    message = f"producer {entry.producer_id} wrote offset {entry.last_offset}, at or above {offset}"
                    yield Finding(Severity.ERROR, FindingKind.SNAPSHOT, path, None, message)

    def _identity(self) -> Iterator[Finding]:
        path = f"{self._directory.path}/{PARTITION_METADATA}"
        try:
            if read_partition_metadata(self._directory) is None:
                yield Finding(Severity.NOTE, FindingKind.MISSING, path, None, "the topic id is not known")
        except CheckpointError as error:
            yield Finding(Severity.ERROR, FindingKind.CHECKPOINT, path, None, str(error))


def _where(start: int | None) -> str:
    return "is not in the checkpoint" if start is None else f"begins at {start} by the checkpoint"


def _batch_file(directory: Directory, name: str) -> Iterator[Finding]:
    """Check a snapshot of the metadata log, which has only batches."""
    path = f"{directory.path}/{name}"
    with dump.opened(directory, name) as file:
        for found in dump.batches_of(file):
            if isinstance(found, dump.Garbage):
                message = f"{found.size_bytes} bytes are no batch"
                yield Finding(Severity.ERROR, FindingKind.GARBAGE, path, found.position, message)
            elif found.problem is not None:
                yield Finding(Severity.ERROR, FindingKind.DAMAGED_BATCH, path, found.position, found.problem)


def _meta(disk: Disk) -> Iterator[Finding]:
    properties = read_meta_properties(disk)
    if properties is None:
        yield Finding(Severity.NOTE, FindingKind.MISSING, META_PROPERTIES, None, "the directory was never formatted")
    elif "cluster.id" not in properties or "version" not in properties:
        message = "version or cluster.id is missing"
        yield Finding(Severity.ERROR, FindingKind.CHECKPOINT, META_PROPERTIES, None, message)


def _log_starts(disk: Disk) -> dict[TopicPartition, int]:
    try:
        return read_offsets(disk, LOG_STARTS)
    except (CheckpointError, StorageError):
        return {}  # reported with the other checkpoints


def _checkpoints(disk: Disk, ranges: dict[str, HeldOffsets]) -> Iterator[Finding]:
    by_partition = {TopicPartition(*found): ranges[name] for name in ranges if (found := parse_directory(name))}
    for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        try:
            offsets = read_offsets(disk, name)
        except CheckpointError as error:
            yield Finding(Severity.WARNING, FindingKind.CHECKPOINT, name, None, str(error))
            continue
        for partition, offset in offsets.items():
            held = by_partition.get(partition)
            title = f"{partition.topic}-{partition.partition}"
            if held is None:
                yield Finding(Severity.NOTE, FindingKind.CHECKPOINT, name, None, f"{title} is not in this directory")
            elif offset > held.end:
                # A log start above the end makes the whole log unreadable; the other checkpoints are simply recomputed.
                severity = Severity.ERROR if name == LOG_STARTS else Severity.WARNING
                message = f"{title}: {offset} lies behind the end of the log at {held.end}"
                yield Finding(severity, FindingKind.CHECKPOINT, name, None, message)
