"""One file of the real disk: `ottla.log.files.disk.File` over a descriptor that comes and goes.

Rules:
- Each file has a lock that is held for one system call, so that no thread closes or reuses a descriptor under another.
  Operations that may take long (`sync`, `warm`, a large `read`, `write_waiting`, `write_again`) work on a duplicate of
  the descriptor, without the lock.
- Bytes that were appended in the last seconds, or found in the page cache a moment ago, count as warm. For other bytes
  Linux tells whether a read would wait for the disk (RWF_NOWAIT); if the file system cannot tell (tmpfs, NFS, FUSE),
  everything counts as warm.
- Writes go to an explicit position. Bytes that a failed write left beyond the end are truncated, at the latest before
  the next write.
- `size` includes bytes that wait to be written (`log/files/pending_writes.py`); the bytes in the file end at `written`.
  One thread at a time writes waiting bytes, after truncating what an earlier truncation or failure left beyond
  `written`. A truncation during such a write leaves the file torn: the next writer waits until that write is done.
- `OSError` becomes `StorageError` with its errno; a socket that is not ready stays `BlockingIOError`.
"""

from __future__ import annotations

import errno
import os
import threading
from time import monotonic
from typing import Protocol

from ottla.log.files.disk import Buffer, Cold, Disk, Sendable, StorageError
from ottla.log.files.pending_writes import PendingPieces, Piece
from ottla.model.limits import (
    COLD_READ_BYTES,
    FRESH_S,
    SHORT_READ_BYTES,
    SLOW_WRITE_S,
    WARM_S,
    WARM_SAMPLE_BYTES,
    WARMED_WHOLE_BYTES,
)
from ottla.server.ports import page_cache
from ottla.server.ports.cpu_wait import waited_for_cpu_s
from ottla.server.ports.disk_reserve import FULL, Reserve, may_use

_CLOSED = -1
_fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has only fsync
# Errors of sendfile that concern the socket, not the file: the connection handles them.
_SOCKET_ERRORS = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.EBADF, errno.ETIMEDOUT)


class Home:
    """The directory of some files; they share this object, so a rename changes the path of all of them."""

    __slots__ = ("files", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: dict[str, OsFile] = {}


class FileOwner(Disk, Protocol):
    """The part of `OsDisk` that its files use."""

    hurried: int  # the thread whose reads must raise `Cold` instead of waiting for the disk
    slow: bool
    reserve: Reserve

    def wrote(self, took_s: float, now_s: float) -> None:
        """Record how long a write took while the directory was flagged as slow; sets or clears the flag."""

    def open_descriptor(self, file: OsFile) -> int:
        """Return a new descriptor for `file`, whose lock the caller holds; another file may lose its descriptor."""

    def note_closed(self, file: OsFile) -> None:
        """Record that the file has closed its descriptor."""


class OsFile:
    __slots__ = (
        "_fd",
        "_fresh_from",
        "_fresh_until_s",
        "_gone",
        "_home",
        "_lock",
        "_torn",
        "_waiting",
        "_warm_from",
        "_warm_to",
        "_warm_until_s",
        "_write_lock",
        "_writing",
        "_younger_from",
        "disk",
        "name",
        "size",
        "used",
    )

    def __init__(self, disk: FileOwner, home: Home, name: str, size: int) -> None:
        self.disk = disk
        self._home = home
        self.name = name
        self.size = size
        self._fd = _CLOSED
        self._lock = threading.Lock()
        self._gone = False
        self._torn = False  # a failed or truncated write may have left bytes beyond `written`
        self._waiting = PendingPieces()
        self._writing: Piece | None = None  # the piece that a worker is writing: the first waiting one, or a rewrite
        self._write_lock = threading.Lock()  # held by the thread that writes `_writing`
        self.used = False
        # bytes from here on were appended lately, so they are in the page cache
        self._fresh_from = self._younger_from = size
        self._fresh_until_s = monotonic() + FRESH_S
        self._warm_from = self._warm_to = 0  # the range that was last found in the page cache
        self._warm_until_s = 0.0

    @property
    def path(self) -> str:
        return f"{self._home.path}/{self.name}" if self._home.path else self.name

    def read(self, position: int, size_bytes: int) -> bytes:
        hurried = self.disk.hurried
        if hurried and hurried == threading.get_ident() and not self.is_warm(position, size_bytes):
            raise Cold(self, position, size_bytes)
        if self._waiting:
            return self._read_waiting(position, size_bytes)
        if size_bytes > SHORT_READ_BYTES:
            return self._read_long(position, size_bytes)
        with self._lock:
            try:
                # Never read beyond `size`: a failed write may have left bytes there.
                return os.pread(self._descriptor(), min(size_bytes, max(self.size - position, 0)), position)
            except OSError as error:
                raise storage_error("read", self.path, error) from error

    def _read_waiting(self, position: int, size_bytes: int) -> bytes:
        with self._lock:
            end, written = min(position + size_bytes, self.size), self.written
            tail = self._waiting.read(position, end)
        head = self._read_long(position, min(end, written) - position) if position < written else b""
        return head + tail

    def _read_long(self, position: int, size_bytes: int) -> bytes:
        fd, size_bytes = self._duplicate("read"), min(size_bytes, max(self.size - position, 0))
        try:
            return os.pread(fd, size_bytes, position)
        except OSError as error:
            raise storage_error("read", self.path, error) from error
        finally:
            os.close(fd)

    def is_warm(self, position: int, size_bytes: int) -> bool:
        now_s = monotonic()
        if now_s >= self._fresh_until_s:
            self._grow_older(now_s)
        end = min(position + size_bytes, self.size)
        if not self.disk.slow and (  # on a slow disk a read may have to wait for a write to the same file
            position >= self._fresh_from
            or (self._warm_from <= position and end <= self._warm_to and now_s < self._warm_until_s)
        ):
            return True
        # For a reader of consecutive batches, one check covers the next WARM_SAMPLE_BYTES.
        ahead = min(max(end, position + WARM_SAMPLE_BYTES), self.size)
        with self._lock:
            try:
                fd = self._descriptor()
                if page_cache.has(fd, position, ahead):
                    self._warm_from, self._warm_to, self._warm_until_s = position, ahead, now_s + WARM_S
                    return True
                return ahead > end and page_cache.has(fd, position, end)
            except OSError as error:
                raise storage_error("read", self.path, error) from error

    def _grow_older(self, now_s: float) -> None:
        """Keep what was appended in the last period fresh for one period more; older bytes are no longer known to be
        warm.
        """
        in_time = now_s < self._fresh_until_s + FRESH_S
        self._fresh_from = self._younger_from if in_time else self.size
        self._younger_from = self.size
        self._fresh_until_s = now_s + FRESH_S

    def warm(self, position: int, size_bytes: int) -> None:
        end = min(position + max(size_bytes, COLD_READ_BYTES), self.size)
        if self.size <= WARMED_WHOLE_BYTES:  # usually an index, which is read by binary search
            position, end = 0, self.size
        fd = self._duplicate("read")
        try:
            page_cache.take_in(fd, position, end)
        except OSError as error:
            raise storage_error("read", self.path, error) from error
        finally:
            os.close(fd)

    def _duplicate(self, what: str) -> int:
        with self._lock:
            try:
                return os.dup(self._descriptor())
            except OSError as error:
                raise storage_error(what, self.path, error) from error

    def append(self, data: Buffer) -> None:
        if self._torn:
            self.write_waiting()
        assert not self._waiting, "written before what waits"
        with self._lock:
            self.used = True
            fd = self._fd
            wanted = len(data)
            size = self.size
            try:
                if fd < 0:
                    fd = self._descriptor()
                began_s = monotonic()
                written = os.pwrite(fd, data, size)
                if (now_s := monotonic()) - began_s > SLOW_WRITE_S:
                    self.disk.slow = True  # provisional: the next write by a worker confirms or clears it
                elif self.disk.slow:
                    self.disk.wrote(now_s - began_s, now_s)
                if written != wanted:
                    _write_rest(fd, data, size, written)
            except OSError as error:
                self._write_at_last(error, size, data)
            self.size = size + wanted

    # --- appends that a worker thread writes later

    def append_later(self, data: Buffer) -> None:
        with self._lock:
            self._waiting.add(self.size, data)
            self.size += len(data)

    @property
    def written(self) -> int:
        waiting = self._waiting
        try:
            return waiting[0].position if waiting else self.size
        except IndexError:  # another thread has just written the last piece
            return self.size

    def write_waiting(self) -> None:
        with self._write_lock:
            while (begun := self._begin_write()) is not None:
                fd, piece, data = begun
                began_s = monotonic() - waited_for_cpu_s()
                try:
                    _write_rest(fd, data, piece.position, 0)
                except OSError as error:
                    with self._lock:
                        self._writing, self._torn = None, True
                        self._trim()
                    raise storage_error("write", self.path, error) from error
                finally:
                    os.close(fd)
                now_s = monotonic()
                self.disk.wrote(now_s - waited_for_cpu_s() - began_s, now_s)
                with self._lock:
                    self._writing = None
                    self._waiting.wrote(piece)

    def _begin_write(self) -> tuple[int, Piece, Buffer] | None:
        """Return the next piece to write and a descriptor to write it with; None if nothing waits."""
        with self._lock:
            if self._gone or not (self._waiting or self._torn):
                return None
            try:
                if self._torn:
                    os.ftruncate(self._descriptor(), self.written)
                    self._torn = False
                if not self._waiting:
                    return None
                fd = os.dup(self._descriptor())
            except OSError as error:
                raise storage_error("write", self.path, error) from error
            piece = self._writing = self._waiting[0]
            return fd, piece, piece.data

    def write(self, position: int, data: Buffer) -> None:
        if self._torn:
            self.write_waiting()
        with self._write_lock, self._lock:  # a concurrent `write_again` of the same range would restore the old bytes
            try:
                _write_rest(self._descriptor(), data, position, 0)
            except OSError as error:
                self._write_at_last(error, position, data)
            self.size = max(self.size, position + len(data))

    def _write_at_last(self, error: OSError, position: int, data: Buffer) -> None:
        """Retry a write that failed because the disk is full at the cost of the reserve if the file may use it; else
        raise.
        """
        while error.errno in FULL and may_use(self.path) and self.disk.reserve.lend(len(data)):
            try:
                return _write_rest(self._descriptor(), data, position, 0)
            except OSError as again:
                error = again
        raise self._failed("write", error) from error

    def write_again(self, position: int, size_bytes: int) -> None:
        with self._write_lock:
            fd, size_bytes = self._begin_again(position, size_bytes)
            try:
                _write_rest(fd, os.pread(fd, size_bytes, position), position, 0)
            except OSError as error:
                raise storage_error("write", self.path, error) from error
            finally:
                os.close(fd)
                with self._lock:
                    self._writing = None
                    if self._torn:  # the file was truncated meanwhile
                        self._trim()

    def _begin_again(self, position: int, size_bytes: int) -> tuple[int, int]:
        """Return a descriptor and how many bytes of the range are in the file."""
        with self._lock:
            try:
                fd = os.dup(self._descriptor())
            except OSError as error:
                raise storage_error("write", self.path, error) from error
            self._writing = Piece(position, b"")
            return fd, min(size_bytes, max(self.written - position, 0))

    def truncate(self, size_bytes: int) -> None:
        with self._lock:
            if self._writing is not None:
                self._torn = True  # the worker truncates the file after its write
            elif size_bytes < self.written or not self._waiting:
                try:
                    os.ftruncate(self._descriptor(), size_bytes)
                except OSError as error:
                    raise storage_error("truncate", self.path, error) from error
                self._torn = False
            self._waiting.cut(size_bytes)
            self.size = size_bytes

    def sync(self) -> None:
        if self._torn or self._waiting:
            self.write_waiting()
        try:
            fd = self._duplicate("sync")
        except StorageError:
            if self._gone:  # replaced or removed before the sync: its data need not be durable
                return
            raise
        try:
            _fdatasync(fd)
        except OSError as error:
            raise storage_error("sync", self.path, error) from error
        finally:
            os.close(fd)

    def send(self, sock: Sendable, position: int, size_bytes: int) -> int:
        with self._lock:
            try:
                return os.sendfile(sock.fileno(), self._descriptor(), position, size_bytes)
            except (BlockingIOError, ConnectionError):
                raise
            except OSError as error:
                if error.errno in _SOCKET_ERRORS:
                    raise
                raise storage_error("send", self.path, error) from error

    def close(self) -> None:
        with self._lock:
            if self._torn and self._fd >= 0 and self._writing is None:
                self._trim()
            self.release()

    def abandon(self) -> None:
        """Close the file for good, because it was removed or replaced: later reads must not see a new file of the same
        name.
        """
        with self._lock:
            self.release()
            self._gone = True
            self._waiting.clear()

    def release(self) -> None:
        """Close the descriptor; the caller holds the lock."""
        fd, self._fd = self._fd, _CLOSED
        if fd >= 0:
            self.disk.note_closed(self)
            os.close(fd)

    def try_evict(self) -> bool:
        """Close the descriptor in favour of another file, unless it is in use at this moment."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self.release()
        finally:
            self._lock.release()
        return True

    def moved(self, home: Home, name: str) -> None:
        self._home = home
        self.name = name

    def _descriptor(self) -> int:
        self.used = True
        if self._fd < 0:
            if self._gone:
                raise OSError(errno.ENOENT, "removed")
            self._fd = self.disk.open_descriptor(self)
        return self._fd

    def _failed(self, what: str, error: OSError) -> StorageError:
        """Undo a write; also close the descriptor, in case it is read-only (see `open_descriptor`)."""
        self._torn = True
        self._trim()
        self.release()
        return storage_error(what, self.path, error)

    def _trim(self) -> None:
        """Truncate what a failed write left beyond `written`; if that fails too, it is done before the next write."""
        try:
            os.ftruncate(self._descriptor(), self.written)
            self._torn = False
        except OSError:
            pass

    def __repr__(self) -> str:
        return f"OsFile({self.path!r}, {self.size} bytes)"


def _write_rest(fd: int, data: Buffer, position: int, written: int) -> None:
    """Write the rest of `data` after a short write, which is rare (a nearly full disk, a signal), or raise the disk's
    error.
    """
    view = memoryview(data)
    while written < len(view):
        count = os.pwrite(fd, view[written:], position + written)
        if count == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += count


def storage_error(what: str, path: str, error: OSError) -> StorageError:
    return StorageError(error.errno or 0, f"cannot {what} {path}: {os.strerror(error.errno or errno.EIO)}")
