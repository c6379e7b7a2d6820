"""The real disk: `ottla.log.disk.Disk` over one data directory, with a bounded number of open descriptors.

Rules:
- A path has one `OsFile` until it is removed; files of a partition share an `_Home`, so renaming a directory is one
  assignment. A descriptor is opened at first use and taken back from the file that was not used for longest (clock
  algorithm: a use costs one attribute store).
- Each file has a lock that is held for one system call, so that no thread closes or reuses a descriptor under another.
  What may take long (`sync`, `warm`, a large `read`) works on a duplicate of the descriptor: nobody waits for it.
- What was appended some seconds ago is in memory. Of the rest Linux tells whether a read would wait for the disk
  (RWF_NOWAIT); where the file system cannot (tmpfs, NFS, FUSE), everything counts as warm.
- Writes go to an explicit position: what a failed write left behind the end is cut off if possible, and overwritten by
  the next append in any case.
- `OSError` becomes `StorageError` with its errno; only opening a missing file stays `FileNotFoundError`, and a socket
  that is not ready stays `BlockingIOError`.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from time import monotonic

from ottla.log.disk import Buffer, Cold, Sendable, StorageError
from ottla.model.limits import (
    COLD_READ_BYTES,
    FRESH_S,
    OPEN_FILES_MAX,
    SHORT_READ_BYTES,
    WARMED_WHOLE_BYTES,
)
from ottla.server import page_cache

_OPEN_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_CLOSED = -1
_NOBODY = 0  # no thread has this number
_fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has the latter only
# Errors of the socket's side of sendfile: they are the connection's business.
_SOCKET_ERRORS = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.EBADF, errno.ETIMEDOUT)


class _Home:
    """A directory as its files know it."""

    __slots__ = ("files", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: dict[str, OsFile] = {}


class OsFile:
    __slots__ = (
        "_fd",
        "_fresh_from",
        "_fresh_until_s",
        "_gone",
        "_home",
        "_lock",
        "_torn",
        "_younger_from",
        "disk",
        "name",
        "size",
        "used",
    )

    def __init__(self, disk: OsDisk, home: _Home, name: str, size: int) -> None:
        self.disk = disk
        self._home = home
        self.name = name
        self.size = size
        self._fd = _CLOSED
        self._lock = threading.Lock()
        self._gone = False
        self._torn = False  # bytes of a failed write may lie behind `size`
        self.used = False
        self._fresh_from = self._younger_from = size  # what was appended of late: it is in memory
        self._fresh_until_s = monotonic() + FRESH_S

    @property
    def path(self) -> str:
        return f"{self._home.path}/{self.name}" if self._home.path else self.name

    def read(self, position: int, size_bytes: int) -> bytes:
        hurried = self.disk.hurried
        if hurried and hurried == threading.get_ident() and not self.is_warm(position, size_bytes):
            raise Cold(self, position, size_bytes)
        if size_bytes > SHORT_READ_BYTES:
            return self._read_long(position, size_bytes)
        with self._lock:
            try:
                # Never beyond `size`: what lies there is not ours.
                return os.pread(self._descriptor(), min(size_bytes, max(self.size - position, 0)), position)
            except OSError as error:
                raise _storage_error("read", self.path, error) from error

    def _read_long(self, position: int, size_bytes: int) -> bytes:
        fd, size_bytes = self._duplicate("read"), min(size_bytes, max(self.size - position, 0))
        try:
            return os.pread(fd, size_bytes, position)
        except OSError as error:
            raise _storage_error("read", self.path, error) from error
        finally:
            os.close(fd)

    def is_warm(self, position: int, size_bytes: int) -> bool:
        now_s = monotonic()
        if now_s >= self._fresh_until_s:
            self._grow_older(now_s)
        if position >= self._fresh_from:
            return True
        with self._lock:
            try:
                return page_cache.has(self._descriptor(), position, min(position + size_bytes, self.size))
            except OSError as error:
                raise _storage_error("read", self.path, error) from error

    def _grow_older(self, now_s: float) -> None:
        """What was appended since the last time is fresh for one period more; of older bytes nobody knows."""
        in_time = now_s < self._fresh_until_s + FRESH_S
        self._fresh_from = self._younger_from if in_time else self.size
        self._younger_from = self.size
        self._fresh_until_s = now_s + FRESH_S

    def warm(self, position: int, size_bytes: int) -> None:
        end = min(position + max(size_bytes, COLD_READ_BYTES), self.size)
        if self.size <= WARMED_WHOLE_BYTES:  # an index, as a rule, which is searched to and fro
            position, end = 0, self.size
        fd = self._duplicate("read")
        try:
            page_cache.take_in(fd, position, end)
        except OSError as error:
            raise _storage_error("read", self.path, error) from error
        finally:
            os.close(fd)

    def _duplicate(self, what: str) -> int:
        with self._lock:
            try:
                return os.dup(self._descriptor())
            except OSError as error:
                raise _storage_error(what, self.path, error) from error

    def append(self, data: Buffer) -> None:
        with self._lock:
            self.used = True
            fd = self._fd
            try:
                if fd < 0:
                    fd = self._descriptor()
                wanted = len(data)
                size = self.size
                written = os.pwrite(fd, data, size)
                if written != wanted:
                    _write_rest(fd, data, size, written)
                self.size = size + wanted
            except OSError as error:
                raise self._failed("write", error) from error

    def write(self, position: int, data: Buffer) -> None:
        with self._lock:
            try:
                _write_rest(self._descriptor(), data, position, 0)
                self.size = max(self.size, position + len(data))
            except OSError as error:
                raise self._failed("write", error) from error

    def write_again(self, position: int, size_bytes: int) -> None:
        with self._lock:
            try:
                fd = self._descriptor()
                data = os.pread(fd, min(size_bytes, max(self.size - position, 0)), position)
                _write_rest(fd, data, position, 0)
            except OSError as error:
                raise _storage_error("write", self.path, error) from error

    def truncate(self, size_bytes: int) -> None:
        with self._lock:
            try:
                os.ftruncate(self._descriptor(), size_bytes)
            except OSError as error:
                raise _storage_error("truncate", self.path, error) from error
            self.size = size_bytes
            self._torn = False

    def sync(self) -> None:
        with self._lock:
            try:
                if self._torn:
                    os.ftruncate(self._descriptor(), self.size)
                    self._torn = False
                fd = os.dup(self._descriptor())
            except OSError as error:
                raise _storage_error("sync", self.path, error) from error
        try:
            _fdatasync(fd)
        except OSError as error:
            raise _storage_error("sync", self.path, error) from error
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
                raise _storage_error("send", self.path, error) from error

    def close(self) -> None:
        with self._lock:
            if self._torn and self._fd >= 0:
                self._trim()
            self.release()

    def abandon(self) -> None:
        """The file lost its name: whoever still holds this must not read what gets the same name later."""
        with self._lock:
            self.release()
            self._gone = True

    def release(self) -> None:
        """Close the descriptor; the caller holds the lock."""
        fd, self._fd = self._fd, _CLOSED
        if fd >= 0:
            self.disk.note_closed(self)
            os.close(fd)

    def try_evict(self) -> bool:
        """Give the descriptor up for another file, unless it is in use this moment."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self.release()
        finally:
            self._lock.release()
        return True

    def moved(self, home: _Home, name: str) -> None:
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
        """Undo a write; the descriptor goes too, in case it is one that cannot write (see `open_descriptor`)."""
        self._torn = True
        self._trim()
        self.release()
        return _storage_error(what, self.path, error)

    def _trim(self) -> None:
        """Cut off what a failed write left; if even that fails, the next write goes over it."""
        try:
            os.ftruncate(self._descriptor(), self.size)
            self._torn = False
        except OSError:
            pass

    def __repr__(self) -> str:
        return f"OsFile({self.path!r}, {self.size} bytes)"


class OsDisk:
    def __init__(self, root: str, *, open_files_max: int = OPEN_FILES_MAX) -> None:
        self.root = os.path.abspath(root)
        self._open_files_max = max(open_files_max, 2)
        self._homes: dict[str, _Home] = {}
        self._clock: OrderedDict[OsFile, None] = (
            OrderedDict()
        )  # files with a descriptor, as the clock's hand meets them
        self._lock = threading.RLock()
        self.hurried = _NOBODY  # the thread whose reads must not wait now

    def hurry(self) -> None:
        self.hurried = threading.get_ident()

    def relax(self) -> None:
        self.hurried = _NOBODY

    @property
    def open_count(self) -> int:
        """Descriptors open now."""
        return len(self._clock)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        directory, _, name = path.rpartition("/")
        with self._lock:
            home = self._homes.get(directory)
            if home is None:
                home = self._homes[directory] = _Home(directory)
            file = home.files.get(name)
            if file is not None:
                return file
            try:
                size = os.stat(self._full(path)).st_size
            except FileNotFoundError:
                if not create:
                    raise
                size = self._create(path)
            except OSError as error:
                raise _storage_error("open", path, error) from error
            file = home.files[name] = OsFile(self, home, name, size)
            return file

    def _create(self, path: str) -> int:
        try:
            os.close(os.open(self._full(path), _OPEN_FLAGS | os.O_CREAT, 0o644))
        except OSError as error:
            raise _storage_error("create", path, error) from error
        return 0

    def list(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(self._full(directory)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _storage_error("list", directory or self.root, error) from error

    def exists(self, path: str) -> bool:
        return os.path.exists(self._full(path))

    def make_directory(self, path: str) -> None:
        full = self._full(path)
        try:
            try:
                os.mkdir(full)  # as a rule only this one is missing: nobody needs to look at those above
            except OSError:
                os.makedirs(full, exist_ok=True)
        except OSError as error:
            raise _storage_error("create", path or self.root, error) from error

    def rename(self, old: str, new: str) -> None:
        with self._lock:
            try:
                os.replace(self._full(old), self._full(new))
            except OSError as error:
                raise _storage_error("rename", old, error) from error
            home = self._homes.pop(old, None)
            if home is not None:
                home.path = new
                self._homes[new] = home
                return
            replaced = self._move_file(old, new)
        if replaced is not None:
            replaced.abandon()

    def _move_file(self, old: str, new: str) -> OsFile | None:
        """Let an open File follow; the one whose place it takes is returned (closing it needs its lock, not ours)."""
        old_directory, _, old_name = old.rpartition("/")
        new_directory, _, new_name = new.rpartition("/")
        target = self._homes.setdefault(new_directory, _Home(new_directory))
        replaced = target.files.pop(new_name, None)
        source = self._homes.get(old_directory)
        file = source.files.pop(old_name, None) if source is not None else None
        if file is not None:
            file.moved(target, new_name)
            target.files[new_name] = file
        return replaced

    def remove(self, path: str) -> None:
        directory, _, name = path.rpartition("/")
        with self._lock:
            home = self._homes.get(directory)
            file = home.files.pop(name, None) if home is not None else None
            full = self._full(path)
            try:
                os.unlink(full)
            except FileNotFoundError:
                pass
            except (IsADirectoryError, PermissionError):
                self._remove_directory(path, full)
            except OSError as error:
                raise _storage_error("remove", path, error) from error
        if file is not None:
            file.abandon()

    def _remove_directory(self, path: str, full: str) -> None:
        try:
            os.rmdir(full)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _storage_error("remove", path, error) from error
        self._homes.pop(path, None)

    def sync_directory(self, path: str) -> None:
        try:
            fd = os.open(self._full(path), _READ_FLAGS)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise _storage_error("sync", path or self.root, error) from error

    def sync_all(self) -> None:
        try:
            fd = os.open(self.root, _READ_FLAGS)
            try:
                _sync_file_system(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise _storage_error("sync", self.root, error) from error

    def close(self) -> None:
        """Give every descriptor back."""
        with self._lock:
            files = list(self._clock)
        for file in files:
            file.close()

    # --- descriptors

    def open_descriptor(self, file: OsFile) -> int:
        """A descriptor for `file`, whose lock the caller holds; another file may lose its own."""
        with self._lock:
            full = self._full(file.path)  # not before: a rename may be under way in another thread
            if len(self._clock) >= self._open_files_max:
                self._evict_one()
            try:
                fd = os.open(full, _OPEN_FLAGS)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._evict_one():
                    fd = os.open(full, _OPEN_FLAGS)
                elif error.errno in (errno.EROFS, errno.EACCES):
                    # A directory that cannot be written any more can still be served.
                    fd = os.open(full, _READ_FLAGS)
                else:
                    raise
            self._clock[file] = None
            file.used = False  # a second use earns the second chance: a scan over many files keeps the busy ones open
            return fd

    def note_closed(self, file: OsFile) -> None:
        with self._lock:
            self._clock.pop(file, None)

    def _evict_one(self) -> bool:
        clock = self._clock
        for _ in range(2 * len(clock)):
            file = next(iter(clock))
            clock.move_to_end(file)
            if file.used:
                file.used = False
            elif file.try_evict():
                return True
        return False

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root


def _write_rest(fd: int, data: Buffer, position: int, written: int) -> None:
    """A short write is rare (a nearly full disk, a signal): go on until all is written or the disk says why not."""
    view = memoryview(data)
    while written < len(view):
        count = os.pwrite(fd, view[written:], position + written)
        if count == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += count


def _storage_error(what: str, path: str, error: OSError) -> StorageError:
    return StorageError(error.errno or 0, f"cannot {what} {path}: {os.strerror(error.errno or errno.EIO)}")


def _sync_file_system(fd: int) -> None:
    """syncfs(2), which Python's os module lacks; elsewhere than on Linux the coarser sync(2)."""
    import ctypes  # when a node stops; not when it starts

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
