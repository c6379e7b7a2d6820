"""Seams: where one segment ends and the next begins, while the first is not known to be on disk.

A loss of power may take the end of a segment and spare the one behind it. What is left then looks like a log that
compaction has thinned out, and a gap is no damage: compaction leaves them, followers copy them, and what a topic's
policy is now says nothing about the time they were made. Only a note of then tells the two apart. It is an empty file,
`<base offset>.seam`, made when a segment is rolled, before the next one exists, and removed when the segment is on disk
as a whole. While it is there the segment before it must end at that offset.

Rules:
- A seam is made only where the last record of a segment lies right before the offset.
- It goes before compaction takes anything out of the segment in front of it.
- A segment that leaves the log takes the seams at both of its ends with it.
- File systems journal names in order: whoever has the new segment has the seam. Where it is missing a gap counts as
  one that somebody made on purpose, as with Kafka (which passes these files by).
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
        """Remove all others."""
        for offset in [each for each in self.offsets if each not in offsets]:
            self._remove(offset)

    def remove_range(self, start: int, end: int) -> None:
        """Remove those in [start, end)."""
        for offset in self.offsets[bisect_left(self.offsets, start) : bisect_left(self.offsets, end)]:
            self._remove(offset)

    def _remove(self, offset: int) -> None:
        self._directory.remove(file_name(offset, SEAM))
        self.offsets.remove(offset)
