"""The node's demands on its machine: exclusive use of its data directories, and enough file descriptors."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import resource
import sys
from collections.abc import Callable

from ottla.log.files.disk import StorageError
from ottla.model import limits

log = logging.getLogger(__name__)

LOCK = ".lock"
PROBE = ".ottla-probe"
DATA_DIRECTORY_MODE = 0o700  # of a data directory that the node makes: who has the files needs no login
# The share of all descriptors that may be used for files of partitions; the rest is for connections.
_FILES_SHARE = 0.5

_locked: set[str] = set()


def lock_directory(path: str) -> Callable[[], None]:
    """Lock a data directory so that no other node, not even a real Kafka, uses it; return a callable that unlocks it.

    A directory that cannot be written needs no lock: the node will find it unusable later.
    """
    place = os.path.realpath(path)
    in_use = StorageError(errno.EBUSY, f"another node uses the data directory {path}")
    # A POSIX lock belongs to a process: it does not exclude a second node in the same process, and closing the file
    # anywhere in the process releases the lock.
    if place in _locked:
        raise in_use
    try:
        os.makedirs(place, DATA_DIRECTORY_MODE, exist_ok=True)
        descriptor = os.open(f"{place}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return lambda: None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        raise in_use from None
    except OSError as error:
        log.warning("%s cannot be locked (%s): take care that only one node uses it", path, error)
    _locked.add(place)

    def unlock() -> None:
        _locked.discard(place)
        os.close(descriptor)

    return unlock


def is_in_use(path: str) -> bool:
    """Return whether a node uses this data directory now."""
    place = os.path.realpath(path)
    if place in _locked:
        return True
    try:
        descriptor = os.open(f"{place}/{LOCK}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EAGAIN)
    finally:
        os.close(descriptor)
    return False


def is_writable(path: str) -> bool:
    """Return whether a file of some size can be written to a disk and removed again."""
    probe = f"{path}/{PROBE}"
    try:
        with open(probe, "wb", buffering=0) as file:
            try:
                written = file.write(bytes(limits.DISK_PROBE_BYTES))
                os.fsync(file.fileno())
            finally:
                os.unlink(probe)
    except OSError:
        return False
    return written == limits.DISK_PROBE_BYTES


def raise_descriptor_limit() -> None:
    """Raise the limit of open descriptors to the highest value that the system allows this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of %d open files stays as it is: %s", soft, error)


def open_files_max(wanted: int, disks: int) -> int:
    """Return how many files each of `disks` may keep open, so that enough descriptors are left for connections."""
    return max(_files(wanted, _descriptors()) // max(disks, 1), 1)


def connections_max(open_files: int, descriptors: int | None = None) -> int:
    """Return how many connections there may be, so that enough descriptors are left for `open_files` and some spare
    ones.
    """
    descriptors = _descriptors() if descriptors is None else descriptors
    spare = min(max(descriptors // 8, limits.DESCRIPTORS_SPARE_MIN), limits.DESCRIPTORS_SPARE_MAX)
    return min(max(descriptors - _files(open_files, descriptors) - spare, 1), limits.CONNECTIONS_MAX)


def _descriptors() -> int:
    """Return how many descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _files(wanted: int, descriptors: int) -> int:
    return min(wanted, int(descriptors * _FILES_SHARE))
