"""The disk as the log sees it: a narrow port, so that the same log runs on a real disk and on a simulated one.

Rules:
- Paths are '/'-joined strings relative to the root the disk was made for ("" is the root itself); partition directories
  lie one level below it.
- Every failure of the disk is raised as `StorageError`; only a missing file at `open` stays `FileNotFoundError`.
- A `File` is an identity, not a descriptor: opening a path twice gives the same File, it follows renames, and `close`
  only releases the descriptor.
- On a disk that blocks its writers (`Disk.slow`) a log's records may be appended now and written later, by a worker
  (`append_later`, `write_waiting`). Until then they are read from memory, and never sent.
- A caller that must not wait for the disk (`Disk.hurry`) gets `Cold` instead, has the range warmed in a thread, and
  tries again.
- `Directory` pairs a disk with one (renamable) directory, so that no code above ever holds a stale path.
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
    """The disk returned, without an error, something else than was written. Nothing was changed."""

    def __init__(self, message: str) -> None:
        super().__init__(EIO, message)


class Cold(Exception):
    """A caller that must not wait would have to wait for the disk: the range is not in the page cache.

    Nothing was changed.
    """

    def __init__(self, file: File, position: int, size_bytes: int) -> None:
        super().__init__(file.path, position, size_bytes)
        self.file = file
        self.position = position
        self.size_bytes = size_bytes


class Sendable(Protocol):
    """The part of a socket that `File.send` needs."""

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
        """The number of bytes in the file, kept exact by our own writes."""

    def read(self, position: int, size_bytes: int) -> bytes:
        """Return up to `size_bytes` from `position`; fewer at the end of the file."""

    def is_warm(self, position: int, size_bytes: int) -> bool:
        """Whether a range can be read or sent without waiting for the disk, as far as that can be determined."""

    def warm(self, position: int, size_bytes: int) -> None:
        """Load a range, and what will probably be read next, into the page cache; called in a worker thread."""

    def append(self, data: Buffer) -> None:
        """Write all of `data` at the end, or raise StorageError and leave the file as it was.

        Not while writes are pending.
        """

    def append_later(self, data: Buffer) -> None:
        """Add all of `data` to the end as readers see it; `write_waiting` writes it to the file."""

    def write_waiting(self) -> None:
        """Write pending data, in order; in a worker thread, while the loop appends more.

        After a StorageError the rest stays pending; the caller that handles the error truncates it.
        """

    @property
    def written(self) -> int:
        """The end of the data that is not pending; usually equal to `size`."""

    def write(self, position: int, data: Buffer) -> None: ...

    def write_again(self, position: int, size_bytes: int) -> None:
        """Write the content of a range again, in a worker thread; data truncated meanwhile is not restored."""

    def truncate(self, size_bytes: int) -> None: ...

    def sync(self) -> None:
        """Make the content durable; may be called from a worker thread while the loop appends."""

    def send(self, sock: Sendable, position: int, size_bytes: int) -> int:
        """Send a range to a non-blocking socket; raises BlockingIOError like `sock.send`."""

    def close(self) -> None:
        """Release the descriptor; the File stays usable."""


class Disk(Protocol):
    """One data directory (one of `log.dirs`)."""

    @property
    def slow(self) -> bool:
        """Whether the disk blocks its writers now: logs that may wait (`Log.may_wait`) then let workers write."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def list(self, directory: str) -> list[str]:
        """Return sorted names; none if the directory is absent."""

    def warming(self, path: str) -> Callable[[], None] | None:
        """Return a function for a thread that prefetches what opening a directory's files reads; None if not needed."""

    def exists(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory atomically, replacing an existing one; Files follow."""

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory; a missing one is no error."""

    def sync_directory(self, path: str) -> None: ...

    def sync_all(self) -> None:
        """Sync everything written so far, contents and names; for thousands of files far quicker than one by one."""

    def keep_reserve(self) -> None:
        """Reserve some space, if there is any, for the few writes by which data on a full disk can be deleted."""

    def hurry(self) -> None:
        """Let reads of this thread raise `Cold` instead of waiting, until `relax` in the same call."""

    def relax(self) -> None: ...

    def close(self) -> None:
        """Release all descriptors; the node has stopped."""


class FileSlice:
    """A range of a file to be sent to a socket: `len()` is known now, the kernel moves the bytes later."""

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
    """A directory of a disk; after a rename through this object its files are still found by name."""

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
    """Let all reads of files of that disk meanwhile raise `Cold` instead of waiting."""
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
