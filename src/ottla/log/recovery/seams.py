"""Seams: the offsets between two segments, noted while the first segment is not known to be on disk.

A loss of power may destroy the end of a segment and spare the next segment. The rest then looks like a compacted log,
and a gap is no damage: compaction leaves gaps, followers copy them, and a topic's present policy does not say when they
were made. Only a note made at the time tells the two apart. It is an empty file, `<base offset>.seam`, created when a
segment is rolled, before the next one exists, and removed when the segment is on disk as a whole. While the file
exists, the segment before it must end at that offset.

Rules:
- A seam is made only if the last record of a segment lies right before the offset.
- It is removed before compaction removes anything from the segment in front of it.
- When a segment leaves the log, the seams at both of its ends are removed.
- File systems journal names in order: if the new segment exists, so does the seam. Without a seam a gap counts as made
  on purpose, as with Kafka (which ignores these files).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable

from ottla.log.files.disk import Directory
from ottla.log.files.names import SEAM, file_name, parse_name


class Seams:
    __slots__ = ("_directory", "offsets")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.offsets: list[int] = []  # ascending

    def discover(self, names: Iterable[str]) -> None:
        parsed = (parse_name(name) for name in names)
        self.offsets = sorted(found[0] for found in parsed if found is not None and found[1:] == (SEAM, ""))

    def make(self, offset: int) -> None:
        self._directory.open(file_name(offset, SEAM), create=True).close()
        if offset not in self:
            insort(self.offsets, offset)

    def __contains__(self, offset: int) -> bool:
        at = bisect_left(self.offsets, offset)
        return at < len(self.offsets) and self.offsets[at] == offset

    def keep(self, offsets: Container[int]) -> None:
        """Remove all seams but the given ones."""
        for offset in [each for each in self.offsets if each not in offsets]:
            self._remove(offset)

    def remove_range(self, start: int, end: int) -> None:
        """Remove the seams in [start, end)."""
        for offset in self.offsets[bisect_left(self.offsets, start) : bisect_left(self.offsets, end)]:
            self._remove(offset)

    def _remove(self, offset: int) -> None:
        self._directory.remove(file_name(offset, SEAM))
        self.offsets.remove(offset)
