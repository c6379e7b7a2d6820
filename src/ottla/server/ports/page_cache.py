"""The page cache: whether a range of a file is in memory, and reading a range into memory."""

from __future__ import annotations

import errno
import os

from ottla.model.limits import COLD_READ_BYTES, SHORT_READ_BYTES, WARM_SAMPLE_BYTES

_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # Linux only
_PAGE_BYTES = 4096


def has(fd: int, position: int, end: int) -> bool:
    """Return whether a range can be read without waiting for the disk; True if the system or the file system cannot
    tell.

    One byte of the first page, of the last, and of some in between is tried, because cold data comes in long runs.
    """
    if _NO_WAIT is None:
        return True
    byte = [bytearray(1)]
    last = end - 1
    try:
        while position // _PAGE_BYTES < last // _PAGE_BYTES:
            os.preadv(fd, byte, position, _NO_WAIT)
            position += WARM_SAMPLE_BYTES
        if last >= 0:
            os.preadv(fd, byte, last, _NO_WAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
    return True


def take_in(fd: int, position: int, end: int) -> None:
    """Read a range into the page cache, and start reading ahead beyond it, because most readers go on there."""
    while position < end and (size_bytes := len(os.pread(fd, min(end - position, COLD_READ_BYTES), position))):
        position += size_bytes
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, end, COLD_READ_BYTES, os.POSIX_FADV_WILLNEED)


def take_in_directory(path: str) -> None:
    """Read into the page cache what opening a log needs: the first page and the last bytes of each of its files."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                _take_in_ends(entry.path)
    except OSError:
        return  # the directory does not exist yet, or opening the log will report the error


def _take_in_ends(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        size_bytes = os.fstat(fd).st_size
        os.pread(fd, _PAGE_BYTES, 0)
        os.pread(fd, SHORT_READ_BYTES, max(size_bytes - SHORT_READ_BYTES, 0))
    finally:
        os.close(fd)
