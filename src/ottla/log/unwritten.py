"""Unwritten: the batches of one log that are appended, but not yet written to its files (see `files/pending_writes`).

They have their offsets, and their producers are remembered; readers may not see them, nor may they be counted or
acknowledged, before they are written. So the log ends, for all readers, at the first of them (`Log.written_offset`),
whichever of its files is written first.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.files.disk import File


class UnwrittenBatch(NamedTuple):
    """One or several batches, in one piece."""

    file: File
    end: int  # the position behind it in the file
    first_offset: int

    @property
    def is_written(self) -> bool:
        return self.file.written >= min(self.end, self.file.size)


class Unwritten(list[UnwrittenBatch]):
    __slots__ = ()

    def add(self, file: File, first_offset: int) -> None:
        """Add the batches that were appended last to the file."""
        self.append(UnwrittenBatch(file, file.size, first_offset))

    def files(self) -> list[File]:
        """Return the files with unwritten batches, in the order to write them."""
        return list(dict.fromkeys(batch.file for batch in self))

    def settle(self) -> None:
        """Forget the batches that are written by now."""
        count = 0
        while count < len(self) and self[count].is_written:
            count += 1
        del self[:count]

    def cut(self, offset: int) -> None:
        """Forget the batches at or above `offset`, where the log was truncated."""
        while self and self[-1].first_offset >= offset:
            self.pop()
