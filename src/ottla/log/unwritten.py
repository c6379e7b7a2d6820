"""Unwritten: the batches of one log that are in its books, but not yet in its files (see `waiting`).

They have their offsets, and their producers are remembered; nobody may see them, count them or be told of them before
they are written. So what a log has, for all others, ends at the first of them (`Log.written_offset`), whichever of
its files is written first.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.files.disk import File


class UnwrittenBatch(NamedTuple):
    """One or several, in one piece."""

    file: File
    end: int  # in the file
    first_offset: int

    @property
    def is_written(self) -> bool:
        return self.file.written >= min(self.end, self.file.size)


class Unwritten(list[UnwrittenBatch]):
    __slots__ = ()

    def add(self, file: File, first_offset: int) -> None:
        """It was the last that was appended to the file."""
        self.append(UnwrittenBatch(file, file.size, first_offset))

    def files(self) -> list[File]:
        """What has to be written, in this order."""
        return list(dict.fromkeys(batch.file for batch in self))

    def settle(self) -> None:
        """Forget what is written by now."""
        count = 0
        while count < len(self) and self[count].is_written:
            count += 1
        del self[:count]

    def cut(self, offset: int) -> None:
        """The log ends there."""
        while self and self[-1].first_offset >= offset:
            self.pop()
