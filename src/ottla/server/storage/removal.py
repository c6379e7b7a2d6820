"""Removal: partition directories that are not served any more.

The directory of a deleted partition is renamed (Kafka's `-delete`) and removed file.delete.delay.ms later, because
answers that are being sent may still point into it. Directories that a stop or crash leaves behind are found at the
next start. A directory without a topic in the metadata, or of an older topic of the same name (a crash came between the
deletion in the metadata and the rename), is renamed with Kafka's suffix `-stray` and kept.

Only files of a partition are removed. If there are other files, they and the directory stay.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable
from itertools import islice

from ottla.log.files.disk import Directory, Disk, StorageError
from ottla.log.files.names import DELETE_DIRECTORY, STRAY_DIRECTORY
from ottla.log.log import Log
from ottla.log.recovery.ownership import is_partition, is_partition_file
from ottla.model import limits

log = logging.getLogger(__name__)

_NAME_BYTES_MAX = 255


class Doomed:
    """A directory to be removed, and the log that was open in it, if any."""

    __slots__ = ("directory", "opened")

    def __init__(self, directory: Directory, opened: Log | None = None) -> None:
        self.directory = directory
        self.opened = opened

    def remove(self) -> None:
        """Remove the files and the directory, blocking; if that fails, the next start tries again."""
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
        self._waiting: list[tuple[int, int, Doomed]] = []  # a heap of (due time, number, directory)
        self._number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, due_ms: int, doomed: Doomed) -> None:
        self._number += 1
        heapq.heappush(self._waiting, (due_ms, self._number, doomed))

    def take_due(self, now_ms: int, count: int) -> list[Doomed]:
        """Return up to `count` directories whose delay is over; the caller removes them."""
        due: list[Doomed] = []
        while self._waiting and len(due) < count and self._waiting[0][0] <= now_ms:
            due.append(heapq.heappop(self._waiting)[2])
        return due


class Retirement:
    """Directories of removed replicas that are not renamed yet. They are renamed a few at a time, because a topic may
    have very many and each rename takes time. `make_way` renames one at once if its name is needed.
    """

    def __init__(self, removal: Removal) -> None:
        self._removal = removal
        self._waiting: dict[tuple[Disk, str], tuple[int, bytes, Log | None]] = {}

    def add(self, disk: Disk, path: str, due_ms: int, topic_id: bytes, opened: Log | None) -> None:
        """Add a directory to be renamed soon, and removed at `due_ms`."""
        self._waiting[disk, path] = due_ms, topic_id, opened

    def make_way(self, disk: Disk, path: str) -> None:
        if (disk, path) in self._waiting:
            self._retire(disk, path)

    def go_on(self) -> int:
        """Rename some directories; return how many are left."""
        for disk, path in tuple(islice(self._waiting, limits.DIRECTORIES_RENAMED_PER_TURN)):
            self._retire(disk, path)
        return len(self._waiting)

    def finish(self) -> None:
        while self.go_on():
            pass

    def _retire(self, disk: Disk, path: str) -> None:
        due_ms, topic_id, opened = self._waiting.pop((disk, path))
        home = Directory(disk, path) if opened is None else opened.directory
        try:
            if opened is not None or is_partition(home):
                mark_deleted(home, topic_id)
                self._removal.add(due_ms, Doomed(home, opened))
        except StorageError as error:
            log.warning("%s: %s", path, error)


def remove_all(doomed: Iterable[Doomed]) -> None:
    """Remove all of them; runs in a worker thread."""
    for each in doomed:
        each.remove()


def mark_deleted(directory: Directory, topic_id: bytes) -> None:
    directory.move_to(_free_name(directory, topic_id, DELETE_DIRECTORY))


def set_aside(directory: Directory, topic_id: bytes) -> None:
    log.warning("%s belongs to no topic of this cluster and is set aside", directory.path)
    directory.move_to(_free_name(directory, topic_id, STRAY_DIRECTORY))


def _free_name(directory: Directory, topic_id: bytes, suffix: str) -> str:
    """Return a new name with the topic's id, or the next free number if an earlier replica of the partition has that
    name.
    """
    number = int.from_bytes(topic_id, "big")
    while True:
        ending = f".{number:032x}{suffix}"
        path = directory.path[: _NAME_BYTES_MAX - len(ending)] + ending
        if not directory.disk.exists(path):
            return path
        number = (number + 1) % (1 << 128)
