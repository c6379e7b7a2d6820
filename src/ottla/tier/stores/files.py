"""The work of a store that is a directory, in plain blocking calls of the operating system; threads do it.

- An object is a file at its key. It is written under `.uploads` in the same directory, made durable, and then gets its
  name (rename, or a hard link where there must be none yet); the folder of the name, and all above it, are made durable
  after that. So an object is whole, and it is still there after a loss of power.
- Deleting makes nothing durable: what comes back after a loss of power is found as garbage again. Empty folders go.
"""

from __future__ import annotations

import itertools
import os
import stat
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ottla.model import limits
from ottla.tier.stores.errors import ObjectNotFound, StoreBroken, StoreUnavailable
from ottla.tier.stores.keys import UPLOADS
from ottla.tier.stores.port import Content, ObjectInfo

_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class Upload:
    """One object that is being written. Its steps are taken by different threads, one at a time; `discard` may come
    while another step hangs, and waits for it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / UPLOADS / uuid.uuid4().hex
        self._lock = threading.Lock()
        self._fd: int | None = None
        self._is_over = False

    def write(self, content: Content) -> None:
        with self._lock:
            view = memoryview(content)
            while view:
                view = view[os.write(self._open_fd(), view) :]

    def finish(self, key: str, *, is_new: bool) -> None:
        """Give the file its name; with `is_new` raise FileExistsError if there is one, which is durable then."""
        with self._lock:
            os.fsync(self._open_fd())
            self._close()
            self._is_over = True
            target = self._root / key
            for _ in range(limits.STORE_FOLDER_TRIES):
                _make_folders(target.parent)
                try:
                    if is_new:
                        os.link(self._path, target)
                    else:
                        os.replace(self._path, target)
                    break
                except FileNotFoundError:  # a deletion took the empty folder
                    continue
                except FileExistsError:  # it may be our own, whose folder could not be synced
                    _sync_folders(target.parent, self._root)
                    raise
            else:
                raise StoreUnavailable(f"{key}: its folder was removed again and again")
            _sync_folders(target.parent, self._root)

    def discard(self) -> None:
        """Remove what is left of it. Steps that come later fail."""
        with self._lock:
            self._is_over = True
            self._close()
            with suppress(FileNotFoundError):
                os.unlink(self._path)

    def _open_fd(self) -> int:
        """The file is made by the first step, which a cancelled call may leave behind, but not without `discard`."""
        if self._is_over:
            raise StoreBroken("the put was given up")
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
            except FileNotFoundError:
                raise _gone(self._root) from None
        return self._fd

    def _close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)


def prepare(root: Path) -> None:
    """Make the directory, in one that exists, and remove what puts left behind in a crash."""
    root.mkdir(exist_ok=True)
    uploads = root / UPLOADS
    uploads.mkdir(exist_ok=True)
    with os.scandir(uploads) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.stat().st_mtime < time.time() - limits.STORE_UPLOAD_ABANDONED_S:
                    os.unlink(entry.path)


def write_whole(root: Path, key: str, content: Content, *, is_new: bool) -> None:
    upload = Upload(root)
    try:
        upload.write(content)
        upload.finish(key, is_new=is_new)
    finally:
        upload.discard()


def read_range(root: Path, key: str, start: int, size_bytes: int) -> memoryview:
    try:
        fd = os.open(root / key, os.O_RDONLY | os.O_CLOEXEC)
        try:
            view, done = memoryview(bytearray(size_bytes)), 0
            while done < size_bytes:
                count = os.preadv(fd, [view[done:]], start + done)
                if not count:
                    raise StoreBroken(f"{key} ends at {os.fstat(fd).st_size}, before {start + size_bytes}")
                done += count
            return view
        finally:
            os.close(fd)
    except _NO_FILE:
        raise _not_found(root, key) from None


def look_at(root: Path, key: str) -> ObjectInfo:
    try:
        found = (root / key).stat()
    except _NO_FILE:
        raise _not_found(root, key) from None
    if stat.S_ISDIR(found.st_mode):
        raise _not_found(root, key)
    return ObjectInfo(key, found.st_size, found.st_mtime_ns // 1_000_000)


def list_page(root: Path, folder: str, after: str) -> list[ObjectInfo]:
    if not (root / UPLOADS).is_dir():
        raise _gone(root)
    return list(itertools.islice(_walk(root / folder, folder, after), limits.STORE_PAGE_OBJECTS))


def delete_all(root: Path, keys: Sequence[str]) -> None:
    for key in keys:
        path = root / key
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
        with suppress(OSError):  # not empty, or another deletion was quicker
            while (path := path.parent) != root:
                path.rmdir()


def _walk(path: Path, folder: str, after: str) -> Iterator[ObjectInfo]:
    """All objects in the order of their keys: a folder has its place by its name with the slash behind it."""
    try:
        with os.scandir(path) as entries:
            found = sorted((entry.name + "/" * entry.is_dir(), entry) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, entry in found:
        key = folder + name
        if name == UPLOADS + "/" and not folder:
            continue
        if name.endswith("/"):
            if key > after or after.startswith(key):
                yield from _walk(path / entry.name, key, after)
        elif key > after:
            with suppress(FileNotFoundError):
                status = entry.stat()
                yield ObjectInfo(key, status.st_size, status.st_mtime_ns // 1_000_000)


def _not_found(root: Path, key: str) -> ObjectNotFound | StoreUnavailable:
    return ObjectNotFound(f"{key}: there is no such object") if (root / UPLOADS).is_dir() else _gone(root)


def _gone(root: Path) -> StoreUnavailable:
    """A disk that is not mounted leaves an empty directory behind, or none: that says nothing about objects."""
    return StoreUnavailable(f"{root} is no store any more: it has no directory {UPLOADS}", "is its disk mounted?")


def _make_folders(path: Path) -> None:
    """As good as it can be done beside deletions, which take empty folders: `mkdir` finds some that are gone then."""
    with suppress(FileExistsError, FileNotFoundError):
        path.mkdir(parents=True, exist_ok=True)


def _sync_folders(path: Path, root: Path) -> None:
    """This one and all above it, up to the store's."""
    _sync_folder(path)
    while path != root:
        path = path.parent
        _sync_folder(path)


def _sync_folder(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # a deletion removed the object and its folder meanwhile
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
