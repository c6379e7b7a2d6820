"""Reserve: space of a data directory that is held back for what a full disk must still take.

Votes, registrations, deleted topics, log starts and checkpoints are a few kilobytes, and without them a node on a full
disk could not start, and nobody could delete anything to make room. So a file of some size lies in each data directory,
and is cut shorter where such a write finds no room. Records get nothing of it: they are what fills disks. Nor do their
indexes and the snapshots of their producers, which are made anew from records, and may be larger than the reserve.
"""

from __future__ import annotations

import errno
import logging
import os
import threading

from ottla.log.files.checkpoint import PARTITION_METADATA
from ottla.log.files.names import parse_name
from ottla.model.limits import RESERVE_BYTES, RESERVE_STEP_BYTES
from ottla.model.names import CLUSTER_METADATA_TOPIC

log = logging.getLogger(__name__)

NAME = ".ottla-reserve"
_JOURNAL = f"{CLUSTER_METADATA_TOPIC}-0"
_SNAPSHOT_OF_METADATA = ".checkpoint"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})  # what a disk, or a quota, says that has no room


def may_use(path: str) -> bool:
    """Whether a file may be written at the reserve's cost: not a segment's files, nor what only new partitions need,
    nor snapshots of the metadata, which can wait."""
    directory, _, name = path.rpartition("/")
    if directory == _JOURNAL:
        return _SNAPSHOT_OF_METADATA not in name
    return parse_name(name) is None and not name.startswith(PARTITION_METADATA)


class Reserve:
    """Of one data directory; from any thread."""

    def __init__(self, root: str) -> None:
        self._path = f"{root}/{NAME}"
        self._lock = threading.Lock()
        self._is_whole = False

    def fill(self) -> None:
        """Take as much as is missing, or as there is room for; where a file system cannot, there is no reserve."""
        with self._lock:
            if self._is_whole or not hasattr(os, "posix_fallocate"):
                return
            try:
                fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError:
                return
            try:
                self._is_whole = _grow(fd)
            finally:
                os.close(fd)

    def lend(self, size_bytes: int) -> bool:
        """Make room for so many bytes; False, and nothing is given, if there is less than that left."""
        with self._lock:
            try:
                size = os.stat(self._path).st_size
                if size < max(size_bytes, 1):
                    return False
                os.truncate(self._path, max(size - max(size_bytes, RESERVE_STEP_BYTES), 0))
            except OSError:
                return False
            if self._is_whole:
                log.error("%s: the disk is full; delete topics or records, or make room", os.path.dirname(self._path))
            self._is_whole = False
            return True


def _grow(fd: int) -> bool:
    """Whether the file has its whole size now."""
    size = os.fstat(fd).st_size
    for wanted in range(RESERVE_BYTES, size, -RESERVE_STEP_BYTES):
        try:
            os.posix_fallocate(fd, size, wanted - size)
        except OSError as error:
            os.ftruncate(fd, size)
            if error.errno not in FULL:
                return True  # there will never be one
            continue
        return wanted == RESERVE_BYTES
    return size >= RESERVE_BYTES
