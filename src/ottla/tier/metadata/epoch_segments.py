"""EpochSegments: the remote segments that have records of one leader epoch, and which of them is read for an offset.

Rules:
- A segment is referenced when its copy is finished: it is then read for the offsets that it has of this epoch. All
  other segments are unreferenced: copies that are not finished, deletions that are not finished, and segments whose
  offsets another copy has, too. They are kept until they are deleted, so that somebody does delete them.
- A copy stays aside if one that begins at or below it ends above it. It takes the place of those that begin at or above
  it and end at or below it. So the starts of the referenced segments ascend and their ends do not descend: the last one
  that begins at or below an offset has the offset if any of them has it.
- Kafka lets a later copy take the place of a larger one that begins where it does, or hides the end of one that begins
  below it: offsets that only the larger one has are not found any more, and nobody deletes it. Where copies follow each
  other, and where a later copy ends no lower than all earlier ones, both are the same.
- The highest offset is that of any finished copy, also of one that was deleted since, as in Kafka.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class EpochSegments:
    """Segments are known here by their UUIDs; `start` and `end` are those of this epoch in a segment, inclusive."""

    __slots__ = ("_ends", "_starts", "highest_offset", "referenced", "unreferenced")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.referenced: list[bytes] = []  # those that are read, by ascending offsets
        self.unreferenced: dict[bytes, None] = {}  # the others, in the order in which they came here
        self.highest_offset: int | None = None

    @classmethod
    def restored(
        cls, highest_offset: int | None, referenced: Iterable[tuple[int, int, bytes]], unreferenced: Iterable[bytes]
    ) -> EpochSegments:
        """Return what a snapshot tells: (start, end, UUID) of the segments that are read, and the other ones."""
        made = cls()
        made.highest_offset = highest_offset
        for start, end, uuid in referenced:
            made._starts.append(start)
            made._ends.append(end)
            made.referenced.append(uuid)
        made.unreferenced = dict.fromkeys(unreferenced)
        return made

    def at(self, offset: int) -> bytes | None:
        """Return the segment that is read for an offset of this epoch."""
        position = bisect_right(self._starts, offset) - 1
        return self.referenced[position] if position >= 0 and offset <= self._ends[position] else None

    def is_read(self, start: int, uuid: bytes) -> bool:
        """Return whether a segment is read for any offset of this epoch."""
        position = self._position(start, uuid)
        return position is not None and self._ends[position] >= start

    def put_aside(self, start: int, uuid: bytes) -> None:
        """A copy or a deletion began: the segment is not read, but it has to be deleted some day."""
        self.remove(start, uuid)
        self.unreferenced[uuid] = None

    def finish(self, start: int, end: int, uuid: bytes) -> None:
        """A copy is finished."""
        self.remove(start, uuid)
        if self.highest_offset is None or end > self.highest_offset:
            self.highest_offset = end
        holder = bisect_right(self._starts, start) - 1  # has the largest end of those that begin at or below `start`
        if holder >= 0 and self._ends[holder] > end:
            self.unreferenced[uuid] = None
            return
        first = bisect_left(self._starts, start)
        last = bisect_right(self._ends, end, lo=first)
        self.unreferenced.update(dict.fromkeys(self.referenced[first:last]))
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        self.referenced[first:last] = [uuid]

    def remove(self, start: int, uuid: bytes) -> None:
        """A segment is deleted."""
        self.unreferenced.pop(uuid, None)
        position = self._position(start, uuid)
        if position is not None:
            del self._starts[position], self._ends[position], self.referenced[position]

    def _position(self, start: int, uuid: bytes) -> int | None:
        position = bisect_left(self._starts, start)
        return position if position < len(self._starts) and self.referenced[position] == uuid else None
