"""Removal: partition directories that are not served any more.

The directory of a deleted partition is renamed at once (Kafka's `-delete`) and removed file.delete.delay.ms later,
because answers that are being sent may still point into it. What a stop or crash leaves behind is found at the next
start. A directory that the cluster knows nothing of, or that belongs to an older topic of the same name (a crash came
between the deletion in the metadata and the renaming), is set aside under Kafka's name for that, `-stray`, and kept.

Only files of a partition are removed. What somebody else put beside them stays, and so does the directory.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable

from ottla.log.disk import Directory, StorageError
from ottla.log.log import Log
from ottla.log.names import DELETE_DIRECTORY, STRAY_DIRECTORY
from ottla.log.ours import is_partition_file

log = logging.getLogger(__name__)

_NAME_BYTES_MAX = 255


class Doomed:
    """A directory to be removed, and the log that was opened on it, if one was."""

    __slots__ = ("directory", "opened")

    def __init__(self, directory: Directory, opened: Log | None = None) -> None:
        self.directory = directory
        self.opened = opened

    def remove(self) -> None:
        """Blocks as long as the disk takes; a directory that resists is tried again at the next start."""
        try:
            if self.opened is not None:
                self.opened.release()
            names = self.directory.list()
            left = [name for name in names if not is_partition_file(name)]
            for name in names:
                if name not in left:
                    self.directory.remove(name)
            if left:
                log.warning("%s is left: it holds files of somebody else (%s)", self.directory.path, ", ".join(left))
            else:
                self.directory.disk.remove(self.directory.path)
        except StorageError as error:
            log.warning("%s", error)


class Removal:
    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Doomed]] = []  # a heap: due time, number, what
        self._number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, due_ms: int, doomed: Doomed) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (due_ms, self._number, doomed))

    def take_due(self, now_ms: int, count: int) -> list[Doomed]:
        """Up to `count` directories whose time has come; the caller removes them."""
        due: list[Doomed] = []
        while self._waiting and len(due) < count and self._waiting[0][0] <= now_ms:
            due.append(heapq.heappop(self._waiting)[2])
        return due


def remove_all(doomed: Iterable[Doomed]) -> None:
    """Runs in a worker thread."""
    for each in doomed:
        each.remove()


def mark_deleted(directory: Directory, topic_id: bytes) -> None:
    directory.move_to(_free_name(directory, topic_id, DELETE_DIRECTORY))


def set_aside(directory: Directory, topic_id: bytes) -> None:
    log.warning("%s belongs to no topic of this cluster and is set aside", directory.path)
    directory.move_to(_free_name(directory, topic_id, STRAY_DIRECTORY))


def _free_name(directory: Directory, topic_id: bytes, suffix: str) -> str:
    """With the topic's id, or the next number that is free: the same replica may have been here before, and gone."""
    number = int.from_bytes(topic_id, "big")
    while True:
        ending = f".{number:032x}{suffix}"
        path = directory.path[: _NAME_BYTES_MAX - len(ending)] + ending
        if not directory.disk.exists(path):
            return path
        number = (number + 1) % (1 << 128)
