"""Segments that left the log but not yet the disk: responses that are being sent may still refer to them.

They are renamed to `.deleted` at once (so that a start after a crash removes them) and removed when their delay is
over.
"""

from __future__ import annotations

from ottla.log.files.disk import Directory
from ottla.log.files.names import DELETED, SNAPSHOT, file_name
from ottla.log.files.segment import Segment


class DeletedSegments:
    __slots__ = ("_directory", "_waiting")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._waiting: list[tuple[int, Segment]] = []  # (due time, segment)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, segment: Segment, due_ms: int) -> None:
        segment.rename(DELETED)
        self._waiting.append((due_ms, segment))

    def remove_due(self, now_ms: int) -> int | None:
        """Remove the files that are due; return when the next ones are, None if nothing is left."""
        for entry in tuple(self._waiting):
            due_ms, segment = entry
            if due_ms <= now_ms:
                self._remove(segment)
                self._waiting.remove(entry)
        return min((due_ms for due_ms, _ in self._waiting), default=None)

    def empty(self) -> None:
        for _, segment in self._waiting:
            self._remove(segment)
        self._waiting.clear()

    def _remove(self, segment: Segment) -> None:
        segment.remove()
        self._directory.remove(file_name(segment.base_offset, SNAPSHOT, DELETED))
