"""Removal: partition directories that are not served any more.

The directory of a deleted partition is renamed (Kafka's `-delete`) and removed file.delete.delay.ms later, because
answers that are being sent may still point into it. What a stop or crash leaves behind is found at the next start. A
directory that the cluster knows nothing of, or that belongs to an older topic of the same name (a crash came between
the deletion in the metadata and the renaming), is set aside under Kafka's name for that, `-stray`, and kept.

Only files of a partition are removed. What somebody else put beside them stays, and so does the directory.
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


class Retirement:
    """Directories of replicas that went and still have their names. They are renamed some at a time: a topic may have
    very many, and each takes the disk some time. Who needs a name meanwhile (`make_way`) has it at once."""

    def __init__(self, removal: Removal) -> None:
        self._removal = removal
        self._waiting: dict[tuple[Disk, str], tuple[int, bytes, Log | None]] = {}

    def add(self, disk: Disk, path: str, due_ms: int, topic_id: bytes, opened: Log | None) -> None:
        """To be removed at `due_ms`."""
        self._waiting[disk, path] = due_ms, topic_id, opened

    def make_way(self, disk: Disk, path: str) -> None:
        if (disk, path) in self._waiting:
            self._retire(disk, path)

    def go_on(self) -> int:
        """Renames some; how many are left."""
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
