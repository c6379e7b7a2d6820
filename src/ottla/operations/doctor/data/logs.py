"""Checks of the logs in a data directory: how they were closed, damage, leftovers, segments, compaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ottla.log.files.checkpoint import CLEAN_SHUTDOWN, CLEANER_OFFSETS, CheckpointError, read_offsets
from ottla.log.files.names import LOG, file_name, parse_directory
from ottla.log.offline.findings import Severity
from ottla.log.offline.verify import verify
from ottla.log.recovery.leftovers import is_deleted_directory
from ottla.model.ids import TopicPartition
from ottla.model.limits import MIB
from ottla.operations.doctor.check import HealthLevel, Symptom, UnseenError, some
from ottla.operations.doctor.data.directory_seen import DATA, DirectorySeen
from ottla.operations.formats import size_text

_SAMPLE_BYTES = 256 * MIB
_SEGMENTS_MANY, _SEGMENT_SMALL_BYTES = 1000, 16 * MIB
_DIRTY_SHARE, _DIRTY_SEGMENTS = 0.75, 10


@DATA.check(
    "shutdown-unclean",
    "The node did not stop in order",
    why="The next start reads the ends of all logs and cuts off what is torn: it takes longer. Records that were "
    "synced, or that other replicas have, are not lost.",
    do="start the node; docs/durability.md says what a crash may cost. Stop it with SIGTERM, and give it time",
)
def shutdown_unclean(directory: DirectorySeen) -> Iterator[Symptom]:
    directory.check_stopped()
    if directory.partitions() and not directory.disk.exists(CLEAN_SHUTDOWN):
        yield Symptom(f"there is no {CLEAN_SHUTDOWN}, and no node runs on the directory")


@DATA.check(
    "log-damaged",
    "Damaged segments (of up to 256 MiB, the newest partitions first)",
    why="Records cannot be read, or a node refuses to open the partition.",
    do="`ottla log verify DIR` reads everything and says where; where other replicas are whole, delete the partition's "
    "directory while the node is stopped, and it is copied again",
    level=HealthLevel.PROBLEM,
)
def log_damaged(directory: DirectorySeen) -> Iterator[Symptom]:
    directory.check_stopped()
    partitions = directory.partitions()
    left, looked = _SAMPLE_BYTES, 0
    for name in sorted(partitions, key=lambda name: -(directory.path / name).stat().st_mtime):
        size_bytes = _size_of(directory.path / name)
        if size_bytes > left:
            continue
        left -= size_bytes
        looked += 1
        wrong = [each for each in verify(directory.disk, partitions=[name]) if each.severity is Severity.ERROR]
        if wrong:
            yield Symptom(f"{name}: {len(wrong)} faults, the first: {wrong[0]}")
    if partitions and not looked:
        raise UnseenError("every partition is larger than the sample: `ottla log verify DIR` reads all of them")


def _size_of(partition: Path) -> int:
    return sum(each.stat().st_size for each in partition.glob("*.log"))


@DATA.check(
    "leftovers",
    "Files of an interrupted deletion or compaction",
    why="They take room until the next start, which removes them.",
    do="start the node; nothing has to be removed by hand",
)
def leftovers(directory: DirectorySeen) -> Iterator[Symptom]:
    directory.check_stopped()
    found = []
    for name in directory.partitions():
        if is_deleted_directory(name):
            found.append(name)
        else:
            found += [f"{name}/{each}" for each in directory.files_of(name).leftovers]
    if found:
        yield Symptom(f"it holds {some(found)}")


@DATA.check(
    "segments-many",
    "Very many small segments",
    why="Each segment has three files: starts, searches and retention take longer, and descriptors are used up.",
    do="`ottla topic alter NAME segment.bytes=1073741824 segment.ms=604800000`",
)
def segments_many(directory: DirectorySeen) -> Iterator[Symptom]:
    for name in directory.partitions():
        count = len(directory.files_of(name).segments)
        if count > _SEGMENTS_MANY and _size_of(directory.path / name) < count * _SEGMENT_SMALL_BYTES:
            yield Symptom(f"{name} has {count} segments, {size_text(_size_of(directory.path / name))} in all")


@DATA.check(
    "compaction-behind",
    "Compaction does not keep up",
    why="The log holds many outdated records: readers and coordinators that load it read all of them.",
    do="`ottla topic alter NAME min.cleanable.dirty.ratio=0.5`; log.cleaner.threads=2, and more "
    "log.cleaner.io.max.bytes.per.second if it is limited",
)
def compaction_behind(directory: DirectorySeen) -> Iterator[Symptom]:
    try:
        cleaned = read_offsets(directory.disk, CLEANER_OFFSETS)
    except CheckpointError as error:
        raise UnseenError(str(error)) from None
    for name in directory.partitions():
        found = parse_directory(name)
        offset = cleaned.get(TopicPartition(*found)) if found else None
        if offset is None:
            continue
        closed = directory.files_of(name).segments[:-1]  # the last one is being written
        sizes = {base: (directory.path / name / file_name(base, LOG)).stat().st_size for base in closed}
        dirty = [size for base, size in sizes.items() if base >= offset]
        if len(dirty) >= _DIRTY_SEGMENTS and sum(dirty) > _DIRTY_SHARE * sum(sizes.values()):
            yield Symptom(f"{name}: {len(dirty)} of {len(sizes)} closed segments have never been compacted")
