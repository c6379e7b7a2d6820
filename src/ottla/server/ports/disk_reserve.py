"""Reserve: space of a data directory that is held back for small writes that must succeed on a full disk.

Votes, registrations, deleted topics, log starts and checkpoints take a few kilobytes. Without them a node with a full
disk could not start, and an operator could not delete topics to make room. So a file of some size lies in each data
directory, and is truncated when such a write finds no room. Records may not use the reserve, because they are what
fills disks; neither may indexes and producer snapshots, which can be rebuilt from records and may be larger than the
reserve.
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
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})  # errors of a full disk or an exhausted quota


def may_use(path: str) -> bool:
    """Return whether a file may be written at the reserve's cost. Excluded are the files of a segment, files that only
    new partitions need, and snapshots of the metadata, which can wait.
    """
    directory, _, name = path.rpartition("/")
    if directory == _JOURNAL:
        return _SNAPSHOT_OF_METADATA not in name
    return parse_name(name) is None and not name.startswith(PARTITION_METADATA)


class Reserve:
    """The reserve of one data directory; thread-safe."""

    def __init__(self, root: str) -> None:
        self._path = f"{root}/{NAME}"
        self._lock = threading.Lock()
        self._is_whole = False

    def fill(self) -> None:
        """Grow the file to its full size, or as far as there is room; without support by the file system there is no
        reserve.
        """
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
        """Make room for `size_bytes` by truncating the file; return False, and change nothing, if the file is smaller
        than that.
        """
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
    """Grow the file; return whether it has its full size now, or can never have it."""
    size = os.fstat(fd).st_size
    for wanted in range(RESERVE_BYTES, size, -RESERVE_STEP_BYTES):
        try:
            os.posix_fallocate(fd, size, wanted - size)
        except OSError as error:
            os.ftruncate(fd, size)
            if error.errno not in FULL:
                return True  # the file system cannot reserve space: do not try again
            continue
        return wanted == RESERVE_BYTES
    return size >= RESERVE_BYTES
