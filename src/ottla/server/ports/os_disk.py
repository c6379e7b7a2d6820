"""The real disk: `ottla.log.files.disk.Disk` over one data directory, with a bounded number of open descriptors.

Rules:
- A path has one `OsFile` until it is removed; files of a partition share a `Home`, so renaming a directory is one
  assignment. A descriptor is opened at first use; if there are too many, a file that was not used lately loses its own
  (clock algorithm: a use costs one attribute store).
- A slow write on the event loop makes the directory `slow`: logs then leave writing to worker threads. If the next
  write is quick, the machine was busy and not the disk, and the flag is cleared; else it stays until no write was slow
  for a second (`wrote`).
- `OSError` becomes `StorageError` with its errno; only opening a missing file stays `FileNotFoundError`.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from ottla.model.limits import OPEN_FILES_MAX, QUICK_AGAIN_S, SLOW_WRITE_S
from ottla.server.ports import page_cache
from ottla.server.ports.disk_reserve import Reserve
from ottla.server.ports.os_file import Home, OsFile, storage_error
from ottla.server.ports.system import DATA_DIRECTORY_MODE

_OPEN_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_NOBODY = 0  # no thread has this id


class OsDisk:
    def __init__(self, root: str, *, open_files_max: int = OPEN_FILES_MAX) -> None:
        self.root = os.path.abspath(root)
        self._open_files_max = max(open_files_max, 2)
        self._homes: dict[str, Home] = {}
        self._clock: OrderedDict[OsFile, None] = (
            OrderedDict()
        )  # files with a descriptor, in the order of the clock algorithm's hand
        self._lock = threading.RLock()
        self.hurried = _NOBODY  # the thread whose reads must raise `Cold` instead of waiting for the disk
        self.slow = False
        self._quick_at_s = 0.0
        self.reserve = Reserve(self.root)

    def keep_reserve(self) -> None:
        self.reserve.fill()

    def hurry(self) -> None:
        self.hurried = threading.get_ident()

    def relax(self) -> None:
        self.hurried = _NOBODY

    def wrote(self, took_s: float, now_s: float) -> None:
        """Record how long a write took while the directory was flagged as slow; sets or clears the flag."""
        if took_s > SLOW_WRITE_S:
            self.slow, self._quick_at_s = True, now_s + QUICK_AGAIN_S
        elif now_s >= self._quick_at_s:
            self.slow = False

    @property
    def open_count(self) -> int:
        """The number of open descriptors."""
        return len(self._clock)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        directory, _, name = path.rpartition("/")
        with self._lock:
            home = self._homes.get(directory)
            if home is None:
                home = self._homes[directory] = Home(directory)
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
                raise storage_error("open", path, error) from error
            file = home.files[name] = OsFile(self, home, name, size)
            return file

    def _create(self, path: str) -> int:
        try:
            os.close(os.open(self._full(path), _OPEN_FLAGS | os.O_CREAT, 0o644))
        except OSError as error:
            raise storage_error("create", path, error) from error
        return 0

    def list(self, directory: str) -> list[str]:
        try:
            return sorted(os.listdir(self._full(directory)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error("list", directory or self.root, error) from error

    def warming(self, path: str) -> Callable[[], None]:
        return partial(page_cache.take_in_directory, self._full(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(self._full(path))

    def make_directory(self, path: str) -> None:
        full = self._full(path)
        mode = 0o777 if path else DATA_DIRECTORY_MODE
        try:
            try:
                os.mkdir(full, mode)  # usually the parents exist, so try without checking them
            except OSError:
                os.makedirs(full, mode, exist_ok=True)
        except OSError as error:
            raise storage_error("create", path or self.root, error) from error

    def rename(self, old: str, new: str) -> None:
        with self._lock:
            try:
                os.replace(self._full(old), self._full(new))
            except OSError as error:
                raise storage_error("rename", old, error) from error
            home = self._homes.pop(old, None)
            if home is not None:
                home.path = new
                self._homes[new] = home
                return
            replaced = self._move_file(old, new)
        if replaced is not None:
            replaced.abandon()

    def _move_file(self, old: str, new: str) -> OsFile | None:
        """Let an open file follow the rename; return the file that it replaced, which the caller closes without the
        disk's lock.
        """
        old_directory, _, old_name = old.rpartition("/")
        new_directory, _, new_name = new.rpartition("/")
        target = self._homes.setdefault(new_directory, Home(new_directory))
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
                raise storage_error("remove", path, error) from error
        if file is not None:
            file.abandon()

    def _remove_directory(self, path: str, full: str) -> None:
        try:
            os.rmdir(full)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise storage_error("remove", path, error) from error
        self._homes.pop(path, None)

    def sync_directory(self, path: str) -> None:
        try:
            fd = os.open(self._full(path), _READ_FLAGS)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise storage_error("sync", path or self.root, error) from error

    def sync_all(self) -> None:
        try:
            fd = os.open(self.root, _READ_FLAGS)
            try:
                _sync_file_system(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise storage_error("sync", self.root, error) from error

    def close(self) -> None:
        """Close all descriptors."""
        with self._lock:
            files = list(self._clock)
        for file in files:
            file.close()

    # --- descriptors

    def open_descriptor(self, file: OsFile) -> int:
        """Return a new descriptor for `file`, whose lock the caller holds; another file may lose its descriptor."""
        with self._lock:
            full = self._full(file.path)  # under the lock: another thread may be renaming the directory
            if len(self._clock) >= self._open_files_max:
                self._evict_one()
            try:
                fd = os.open(full, _OPEN_FLAGS)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._evict_one():
                    fd = os.open(full, _OPEN_FLAGS)
                elif error.errno in (errno.EROFS, errno.EACCES):
                    # A directory that became read-only can still serve reads.
                    fd = os.open(full, _READ_FLAGS)
                else:
                    raise
            self._clock[file] = None
            # only a second use protects it from eviction, so a scan over many files keeps the busy ones open
            file.used = False
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


def _sync_file_system(fd: int) -> None:
    """Call syncfs(2), which Python's os module lacks; on systems other than Linux, the coarser sync(2)."""
    import ctypes  # imported only when a node stops, to keep the start fast

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
