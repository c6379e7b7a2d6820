"""The disk as the log sees it: a narrow port, so that the same log runs on a real disk and on a simulated one.

Rules:
- Paths are '/'-joined strings relative to the root the disk was made for ("" is the root itself); partition
  directories lie one level below it.
- Every failure of the disk arrives as `StorageError`; only a missing file at `open` stays `FileNotFoundError`.
- A `File` is an identity, not a descriptor: opening a path twice gives the same File, it follows renames, and `close`
  only gives the descriptor back.
- On a disk that makes its writers wait (`Disk.slow`) a log's records may be appended now and written later, by a worker
  (`append_later`, `write_waiting`). Until then they are read from memory, and never sent.
- Who must not wait for the disk (`Disk.hurry`) gets `Cold` instead, has the range warmed in a thread, and tries again.
- `Directory` pairs a disk with one (renamable) directory, so that nothing above ever holds a stale path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EIO
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class StorageError(Exception):
    """The disk failed: full, read-only, gone. `errno` is the operating system's number."""

    def __init__(self, errno: int, message: str) -> None:
        super().__init__(errno, message)
        self.errno = errno
        self.message = message

    def __str__(self) -> str:
        return self.message


class DamagedError(StorageError):
    """The disk gave, without complaint, something else than was written. Nothing was changed."""

    def __init__(self, message: str) -> None:
        super().__init__(EIO, message)


class Cold(Exception):
    """Whoever is in a hurry would have to wait for the disk: the range is not in memory. Nothing was changed."""

    def __init__(self, file: File, position: int, size_bytes: int) -> None:
        super().__init__(file.path, position, size_bytes)
        self.file = file
        self.position = position
        self.size_bytes = size_bytes


class Sendable(Protocol):
    """What `File.send` needs of a socket."""

    def fileno(self) -> int: ...

    def send(self, data: bytes, /) -> int: ...


class File(Protocol):
    """One file, opened lazily."""

    @property
    def path(self) -> str: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def size(self) -> int:
        """Bytes in the file, kept exact by our own writes."""

    def read(self, position: int, size_bytes: int) -> bytes:
        """Up to `size_bytes` from `position`; short at the end of the file."""

    def is_warm(self, position: int, size_bytes: int) -> bool:
        """Whether a range can be read or sent without waiting for the disk, as far as that can be told."""

    def warm(self, position: int, size_bytes: int) -> None:
        """Wait until a range, and what will be wanted next, is in memory; in a worker thread."""

    def append(self, data: Buffer) -> None:
        """All of `data` at the end, or StorageError and the file as it was. Not while anything waits."""

    def append_later(self, data: Buffer) -> None:
        """All of `data` at the end, as its readers see it; `write_waiting` puts it there."""

    def write_waiting(self) -> None:
        """Write what waits, in order; in a worker thread, while the loop appends more. StorageError: the rest waits on,
        and is cut off by whoever hears of it."""

    @property
    def written(self) -> int:
        """Where that ends which does not wait: `size`, as a rule."""

    def write(self, position: int, data: Buffer) -> None: ...

    def write_again(self, position: int, size_bytes: int) -> None:
        """What lies there now, in a worker thread: what is cut off meanwhile does not come back."""

    def truncate(self, size_bytes: int) -> None: ...

    def sync(self) -> None:
        """Force content to the platter; may be called from a worker thread while the loop appends."""

    def send(self, sock: Sendable, position: int, size_bytes: int) -> int:
        """Hand a range to a non-blocking socket; BlockingIOError like `sock.send`."""

    def close(self) -> None:
        """Give the descriptor back; the File stays usable."""


class Disk(Protocol):
    """One data directory (one of `log.dirs`)."""

    @property
    def slow(self) -> bool:
        """Whether it makes its writers wait now: logs that can (`Log.may_wait`) let workers write."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def list(self, directory: str) -> list[str]:
        """Sorted names; none if the directory is absent."""

    def warming(self, path: str) -> Callable[[], None] | None:
        """Work for a thread: it brings into memory what opening a directory's files reads. None: it is there."""

    def exists(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Atomic, replaces; Files follow."""

    def remove(self, path: str) -> None:
        """A file or an empty directory; missing is fine."""

    def sync_directory(self, path: str) -> None: ...

    def sync_all(self) -> None:
        """Everything written so far, contents and names; for thousands of files far quicker than one by one."""

    def keep_reserve(self) -> None:
        """Hold some space back, if there is any, for the few bytes that a full disk must take to get emptier."""

    def hurry(self) -> None:
        """From now on the reads of this thread raise `Cold` where they would wait; until `relax`, in the same call."""

    def relax(self) -> None: ...

    def close(self) -> None:
        """Give every descriptor back; the node has stopped."""


class FileSlice:
    """A range of a file on its way to a socket: `len()` is known now, the bytes are moved by the kernel later."""

    __slots__ = ("file", "position", "size_bytes")

    def __init__(self, file: File, position: int, size_bytes: int) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        return self.file.read(self.position, self.size_bytes)

    def __repr__(self) -> str:
        return f"FileSlice({self.file.path!r}, {self.position}, {self.size_bytes})"


class Directory:
    """A directory of a disk; renaming it here keeps every later open by name right."""

    __slots__ = ("disk", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path

    def open(self, name: str, *, create: bool = False) -> File:
        return self.disk.open(self._join(name), create=create)

    def list(self) -> list[str]:
        return self.disk.list(self.path)

    def exists(self, name: str) -> bool:
        return self.disk.exists(self._join(name))

    def rename(self, old: str, new: str) -> None:
        self.disk.rename(self._join(old), self._join(new))

    def remove(self, name: str) -> None:
        self.disk.remove(self._join(name))

    def sync(self) -> None:
        """Make creations, renames and removals of files durable."""
        self.disk.sync_directory(self.path)

    def move_to(self, path: str) -> None:
        self.disk.rename(self.path, path)
        self.path = path

    def _join(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


@contextmanager
def in_a_hurry(directory: Directory) -> Iterator[None]:
    """What is read meanwhile, of any file of that disk, raises `Cold` where it would have to be waited for."""
    disk = directory.disk
    disk.hurry()
    try:
        yield
    finally:
        disk.relax()


def read_all(file: File) -> bytes:
    return file.read(0, file.size)


def replace_file(directory: Directory, name: str, data: bytes, *, sync: bool = True) -> None:
    """Write a small file so that a crash leaves either the old content or the new, never a mixture."""
    temporary = name + ".tmp"
    file = directory.open(temporary, create=True)
    try:
        if file.size:  # a crash left it
            file.truncate(0)
        file.append(data)
        if sync:
            file.sync()
    finally:
        file.close()
    directory.rename(temporary, name)
    if sync:
        directory.sync()
