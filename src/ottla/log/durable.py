"""Which part of a log is not known to be on disk yet, and the recovery point that follows from that.

Rules:
- One sync at a time: `files` lists what to sync, then either `done` or `failed` before the next `files`. A sync makes
  durable what existed when it began; not what is truncated meanwhile, nor what is written in its place.
- The recovery point says: everything below it is on disk *with its indexes and producer snapshot*, so that recovery
  after a crash can skip it. A segment that was rolled while a sync was running therefore holds it back.
- New names (files created or renamed) are durable only once their directory was synced.
- A rolled segment has a seam behind it until it is on disk as a whole, see `seams`.
- After a failed sync the kernel marks the pages as clean although they may never have reached the disk: a second sync
  would succeed and prove nothing. So everything above the recovery point is written again before the next sync. After a
  crash it is unknown whether a sync failed before: so the first sync of a log that was not closed cleanly writes again,
  too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from ottla.log.files.disk import Directory, File, StorageError
from ottla.log.files.segment import Segment
from ottla.log.recovery.seams import Seams
from ottla.model.limits import INT64_MAX, SHORT_READ_BYTES


class Syncable(Protocol):
    """A file, or a directory whose new names must become durable."""

    def sync(self) -> None: ...


class Durable:
    __slots__ = ("_claim", "_directory", "_suspect", "_taken", "names_changed", "recovery_point", "rolled", "seams")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.recovery_point = 0
        self.seams = Seams(directory)
        self.rolled: list[Segment] = []  # ended, not yet synced as a whole; oldest first
        self.names_changed = False
        self._taken = 0
        self._claim: int | None = None  # the offset up to which the sync under way makes the log durable
        self._suspect = False  # pages that are not known to be on disk may be marked as clean

    def roll(self, segment: Segment, end_offset: int) -> None:
        """Make a seam when a segment ends; the next one, which does not exist yet, begins at `end_offset`."""
        if segment.ends_at(end_offset):
            self.seams.make(end_offset)

    def files(self, active: Segment, extra: list[File], end_offset: int) -> list[Syncable]:
        """Return what to sync, in this order, so that everything appended up to `end_offset` becomes durable."""
        contents = [file for segment in self.rolled for file in segment.files()]
        contents += [active.file, *extra]
        files: list[Syncable] = self._rewritten(contents, active) if self._suspect else [*contents]
        self._suspect = False
        self._taken = len(self.rolled)
        self._claim = end_offset
        if self.names_changed:
            files += [self._directory, Directory(self._directory.disk, "")]
            self.names_changed = False
        return files

    def _rewritten(self, contents: list[File], active: Segment) -> list[Syncable]:
        """Return the files as ones to write again: records from the recovery point on, all other files completely."""
        starts = {segment.file: self._first_in_doubt(segment) for segment in (*self.rolled, active)}
        return [RewrittenFile(file, starts.get(file, 0)) for file in contents]

    def _first_in_doubt(self, segment: Segment) -> int:
        """Return the file position from which on data is not known to be on disk."""
        if self.recovery_point <= segment.base_offset:
            return 0
        found = segment.find(self.recovery_point)
        return segment.file.size if found is None else found[0]

    def done(self) -> int:
        """Note that the last `files` are on disk; return the offset up to which the log is durable by that, or 0."""
        claim, self._claim = self._claim, None
        if claim is None:
            return 0  # another sync, which began after this one, ended before it
        del self.rolled[: self._taken]
        self._taken = 0
        complete = min(claim, self.rolled[0].base_offset) if self.rolled else claim
        self.recovery_point = max(self.recovery_point, complete)
        self._close_seams()
        return claim

    def _close_seams(self) -> None:
        with suppress(StorageError):  # then they are removed after the next sync: they are still true
            self.seams.remove_range(0, self.rolled[0].base_offset + 1 if self.rolled else INT64_MAX)

    def failed(self) -> None:
        self._claim = None
        self._taken = 0
        self.doubt()

    def doubt(self) -> None:
        """Note that pages above the recovery point may be marked as clean by mistake."""
        self._suspect = True
        self.names_changed = True

    def forget(self, segment: Segment) -> None:
        """Note that the segment left the log: it need not become durable."""
        if segment in self.rolled:
            self._taken -= self.rolled.index(segment) < self._taken
            self.rolled.remove(segment)

    def cut(self, offset: int) -> None:
        """Note that the log is truncated at `offset`, or about to be."""
        if self._claim is not None:
            self._claim = min(self._claim, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.names_changed = True


class RewrittenFile:
    """A file whose pages from `start` on may be marked as clean by mistake: they are written again before the sync."""

    __slots__ = ("_file", "_start")

    def __init__(self, file: File, start: int) -> None:
        self._file = file
        self._start = start

    def write(self) -> None:
        # in short steps, so that other threads can use the file
        for position in range(self._start, self._file.size, SHORT_READ_BYTES):
            self._file.write_again(position, SHORT_READ_BYTES)

    def sync(self) -> None:
        self.write()
        self._file.sync()
