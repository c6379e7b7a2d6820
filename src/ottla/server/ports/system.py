"""What a node needs of the machine it runs on: a data directory of its own, and enough descriptors."""

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
# Of all descriptors, so much may be files of partitions; the rest is for connections.
_FILES_SHARE = 0.5

_locked: set[str] = set()


def lock_directory(path: str) -> Callable[[], None]:
    """Makes sure that no other node, not even a real Kafka, uses a data directory; gives what undoes it.

    A directory that cannot be written needs no lock: it will be found unusable.
    """
    place = os.path.realpath(path)
    in_use = StorageError(errno.EBUSY, f"another node uses the data directory {path}")
    # Such locks belong to a process: they do not tell two nodes of one apart, and closing the file anywhere in it
    # would end the lock.
    if place in _locked:
        raise in_use
    try:
        os.makedirs(place, exist_ok=True)
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
    """Whether a node uses this data directory now."""
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
    """Whether something of some size can be put on a disk, and taken away again."""
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
    """As many descriptors as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of %d open files stays as it is: %s", soft, error)


def open_files_max(wanted: int, disks: int) -> int:
    """How many files each of `disks` may keep open, so that connections find descriptors as well."""
    return max(_files(wanted, _descriptors()) // max(disks, 1), 1)


def connections_max(open_files: int, descriptors: int | None = None) -> int:
    """How many connections there may be, so that the `open_files` that are wanted, and some more, find descriptors."""
    descriptors = _descriptors() if descriptors is None else descriptors
    spare = min(max(descriptors // 8, limits.DESCRIPTORS_SPARE_MIN), limits.DESCRIPTORS_SPARE_MAX)
    return min(max(descriptors - _files(open_files, descriptors) - spare, 1), limits.CONNECTIONS_MAX)


def _descriptors() -> int:
    """How many this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _files(wanted: int, descriptors: int) -> int:
    return min(wanted, int(descriptors * _FILES_SHARE))
