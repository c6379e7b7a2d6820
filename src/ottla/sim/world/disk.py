"""A disk in memory with the faults that disks have; implements `ottla.log.files.disk.Disk` and `File`.

Fault model (what may happen, and what durable code may therefore rely on)
--------------------------------------------------------------------------
Process crash (`Crash.PROCESS`, kill -9): the page cache survives. Every completed call keeps its effect; only the call
in progress, when the crash is set to strike inside one (`crash_within`), may leave a prefix of its bytes. Acknowledged
records must survive under every durability setting.

Power loss (`Crash.POWER`): only what was synced is sure.
- Content not covered by a later `File.sync` is kept, lost or torn per 512-byte sector (`inode.py`), and may be garbage
  where it was being written (`garbage_rate`). So recovery must check every batch past the recovery point.
- A create, rename, remove or make_directory not covered by a later `sync_directory` of the directory that holds the
  name may be undone. Within one directory such changes are undone from the last one backwards (file systems journal
  names in order); directories decide independently of each other and of the content: a synced file whose name was not
  synced is gone.
- Acknowledged records survive only if they were synced before the acknowledgement (`ottla.fsync.before.ack=true` or
  `flush.messages=1`).

Data that waits to be written (`File.append_later`, while `slow_writes`) is in the memory of the process: it is lost in
every crash.

Errors while running: a full disk (`capacity_bytes`), a read-only disk, EIO on reads, writes and syncs (`*_error_rate`).
A failed call changes nothing, except that after a failed sync the dirty pages count as clean (as Linux has it): a later
sync succeeds without making them durable. Code that retries a failed fsync and then acknowledges is wrong, and is
caught by a later power loss.

Bit rot (`flip_bit`): one bit anywhere in a file. It may make data unreadable; it must only be detected.

A crash returns the disk as the next incarnation finds it; the old object and its files are dead: every call raises
`HostCrashedError`, which is no Exception, so that the dying node's code does not handle it like an error.
"""

from __future__ import annotations

import enum
import errno
import random
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.log.files.disk import Buffer, StorageError
from ottla.log.files.pending_writes import PendingPieces
from ottla.sim.world.inode import Inode


class Crash(enum.Enum):
    PROCESS = "process"
    POWER = "power"


class HostCrashedError(BaseException):
    """The machine under this code has died: unwind, no handler can do anything about it."""


@dataclass(slots=True)
class DiskFaults:
    """The present faults of a disk; tests and the fault schedule change them at any time."""

    capacity_bytes: int | None = None
    read_only: bool = False
    read_error_rate: float = 0.0
    write_error_rate: float = 0.0
    sync_error_rate: float = 0.0
    garbage_rate: float = 0.0
    slow_writes: bool = False  # logs let workers write, because writes would block

    @property
    def healthy(self) -> bool:
        """Whether every call succeeds now, regardless of what a power loss would leave."""
        broken = self.read_only or self.read_error_rate or self.write_error_rate or self.sync_error_rate
        return self.capacity_bytes is None and not broken


@dataclass(slots=True, eq=False)
class _Directory:
    """Names of one directory: as visible, as durable, and the changes between the two, oldest first."""

    names: dict[str, _Directory | Inode] = field(default_factory=dict)
    durable: dict[str, _Directory | Inode] = field(default_factory=dict)
    journal: list[dict[str, _Directory | Inode | None]] = field(default_factory=list)

    def change(self, changes: dict[str, _Directory | Inode | None]) -> None:
        _apply(self.names, changes)
        self.journal.append(changes)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.journal.clear()

    def sync_all(self) -> None:
        self.sync()
        for node in self.names.values():
            if isinstance(node, _Directory):
                node.sync_all()
            else:
                node.sync()

    def lose_power(self, rng: random.Random, garbage_rate: float) -> None:
        for changes in self.journal[: rng.choice((0, len(self.journal), rng.randint(0, len(self.journal))))]:
            _apply(self.durable, changes)
        self.names = dict(self.durable)
        self.journal.clear()
        for name in sorted(self.names):
            node = self.names[name]
            node.lose_power(rng, garbage_rate)


def _apply(names: dict[str, _Directory | Inode], changes: dict[str, _Directory | Inode | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _used_bytes(directory: _Directory) -> int:
    return sum(len(node.cache) if isinstance(node, Inode) else _used_bytes(node) for node in directory.names.values())


class SimDisk:
    """One simulated data directory. `SimDisk()` without arguments is a plain in-memory disk."""

    def __init__(self, rng: random.Random | None = None, faults: DiskFaults | None = None) -> None:
        self.rng = rng if rng is not None else random.Random(0)
        self.faults = faults if faults is not None else DiskFaults()
        self.syncs = 0
        self.on_operation: Callable[[str, str, int], None] | None = None
        self._root = _Directory()
        self._dead = False
        self._operations_left: int | None = None
        self._on_crash: Callable[[], None] | None = None
        self._files: dict[Inode, SimFile] = {}

    # -- the Disk port

    def open(self, path: str, *, create: bool = False) -> SimFile:
        self._check_alive()
        parent, name = self._parent(path)
        node = parent.names.get(name)
        if isinstance(node, _Directory):
            raise StorageError(errno.EISDIR, f"{path} is a directory")
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._before_change("create", path)
            node = Inode()
            parent.change({name: node})
        file = self._files.get(node)
        if file is None:
            file = self._files[node] = SimFile(self, path, node)
        return file

    def list(self, directory: str) -> list[str]:
        self._check_alive()
        try:
            return sorted(self._directory(directory).names)
        except FileNotFoundError:
            return []

    def warming(self, path: str) -> None:
        """Nothing to do: all data is in memory."""

    def exists(self, path: str) -> bool:
        self._check_alive()
        try:
            parent, name = self._parent(path)
        except FileNotFoundError:
            return False
        return name in parent.names or not name

    def make_directory(self, path: str) -> None:
        self._check_alive()
        directory = self._root
        for name in path.split("/") if path else ():
            node = directory.names.get(name)
            if isinstance(node, Inode):
                raise StorageError(errno.EEXIST, f"{name} in {path} is a file")
            if node is None:
                self._before_change("mkdir", path)
                node = _Directory()
                directory.change({name: node})
            directory = node

    def rename(self, old: str, new: str) -> None:
        self._check_alive()
        (old_parent, old_name), (new_parent, new_name) = self._parent(old), self._parent(new)
        node = old_parent.names.get(old_name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", old)
        if old == new:
            return
        target = new_parent.names.get(new_name)
        if isinstance(target, _Directory) and (target.names or isinstance(node, Inode)):
            raise StorageError(errno.ENOTEMPTY, f"{new} is a directory that cannot be replaced")
        self._before_change("rename", f"{old} {new}")
        if old_parent is new_parent:
            old_parent.change({old_name: None, new_name: node})
        else:
            # Real file systems journal both halves together; simulated as durable at once.
            new_parent.change({new_name: node})
            old_parent.change({old_name: None})
            new_parent.sync()
            old_parent.sync()
        if isinstance(target, Inode):
            self._files.pop(target, None)
        for file in self._files.values():
            if file.path == old or file.path.startswith(old + "/"):
                file.path = new + file.path[len(old) :]

    def remove(self, path: str) -> None:
        self._check_alive()
        try:
            parent, name = self._parent(path)
        except FileNotFoundError:
            return
        node = parent.names.get(name)
        if node is None:
            return
        if isinstance(node, _Directory) and node.names:
            raise StorageError(errno.ENOTEMPTY, f"{path} is not empty")
        self._before_change("remove", path, frees=True)
        parent.change({name: None})
        if isinstance(node, Inode):
            self._files.pop(node, None)

    def sync_directory(self, path: str) -> None:
        self._check_alive()
        directory = self._directory(path)
        self._step("sync_directory", path)
        if self.rng.random() < self.faults.sync_error_rate:
            raise StorageError(errno.EIO, f"cannot sync directory {path}")
        directory.sync()

    def sync_all(self) -> None:
        self._step("sync_all", "")
        if self.rng.random() < self.faults.sync_error_rate:
            raise StorageError(errno.EIO, "cannot sync the disk")
        self._root.sync_all()

    def close(self) -> None:
        """Nothing to close: descriptors are not simulated."""

    @property
    def slow(self) -> bool:
        return self.faults.slow_writes

    def keep_reserve(self) -> None:
        """Nothing is reserved: a full disk takes no byte, and the node must cope with that."""

    def hurry(self) -> None:
        """Nothing to do: this disk never blocks."""

    def relax(self) -> None:
        """Nothing to do: this disk never blocks."""

    # -- faults

    def crash(self, kind: Crash) -> SimDisk:
        """Kill this disk object and return the one that the next incarnation finds."""
        self._dead = True
        reborn = SimDisk(self.rng, self.faults)
        reborn._root = self._root
        reborn.on_operation = self.on_operation
        if kind is Crash.POWER:
            reborn._root.lose_power(self.rng, self.faults.garbage_rate)
        return reborn

    def crash_within(self, operations: int, on_crash: Callable[[], None]) -> None:
        """Crash inside the last of that many coming operations, which is half done; `on_crash` is called first."""
        self._operations_left, self._on_crash = operations, on_crash

    def crash_never(self) -> None:
        """Cancel `crash_within`."""
        self._operations_left = self._on_crash = None

    def flip_bit(self, path: str, spared: Container[int] = ()) -> int | None:
        """Flip a bit in a file, but not in the `spared` bytes; return its byte position."""
        parent, name = self._parent(path)
        node = parent.names[name]
        return node.flip_bit(self.rng, spared) if isinstance(node, Inode) else None

    @property
    def used_bytes(self) -> int:
        return _used_bytes(self._root)

    def paths(self) -> Sequence[str]:
        """Return the paths of all files, sorted."""
        return _paths(self._root, "")

    def content(self, path: str) -> bytes:
        """Return what a reader sees, without the faults."""
        parent, name = self._parent(path)
        node = parent.names.get(name)
        if not isinstance(node, Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return bytes(node.cache)

    # --- called by files

    def _check_alive(self) -> None:
        if self._dead:
            raise HostCrashedError

    def _step(self, what: str, path: str, size_bytes: int = 0) -> bool:
        """Count an operation; return True if the crash happens in it (the caller does half of it and calls `_die`)."""
        self._check_alive()
        if self.on_operation is not None:
            self.on_operation(what, path, size_bytes)
        if self._operations_left is None:
            return False
        self._operations_left -= 1
        if self._operations_left > 0:
            return False
        if what != "write":
            self._die()
        return True

    def _die(self) -> None:
        self._dead = True
        if self._on_crash is not None:
            self._on_crash()
        raise HostCrashedError

    def _before_change(self, what: str, path: str, *, frees: bool = False) -> None:
        self._step(what, path)
        if self.faults.read_only:
            raise StorageError(errno.EROFS, f"cannot {what} {path}: read-only")
        if not frees and self.faults.capacity_bytes is not None and self.used_bytes >= self.faults.capacity_bytes:
            raise StorageError(errno.ENOSPC, f"cannot {what} {path}: no space left")

    def _write(self, inode: Inode, path: str, position: int, data: Buffer) -> None:
        content = bytes(data)
        if self._step("write", path, len(content)):
            inode.write(position, content[: self.rng.randint(0, len(content))])
            self._die()
        if self.faults.read_only:
            raise StorageError(errno.EROFS, f"cannot write {path}: read-only")
        if self.rng.random() < self.faults.write_error_rate:
            raise StorageError(errno.EIO, f"cannot write {path}")
        grows = position + len(content) - len(inode.cache)
        capacity = self.faults.capacity_bytes
        if capacity is not None and grows > 0 and self.used_bytes + grows > capacity:
            raise StorageError(errno.ENOSPC, f"cannot write {path}: no space left")
        inode.write(position, content)

    def _truncate(self, inode: Inode, path: str, size_bytes: int) -> None:
        self._step("truncate", path, size_bytes)
        if self.faults.read_only:
            raise StorageError(errno.EROFS, f"cannot truncate {path}: read-only")
        inode.truncate(size_bytes)

    def _sync(self, inode: Inode, path: str) -> None:
        self._step("sync", path, len(inode.cache))
        self.syncs += 1
        if self.rng.random() < self.faults.sync_error_rate:
            inode.forget_dirty()
            raise StorageError(errno.EIO, f"cannot sync {path}")
        inode.sync()

    def _before_read(self, path: str) -> None:
        self._check_alive()
        if self.rng.random() < self.faults.read_error_rate:
            raise StorageError(errno.EIO, f"cannot read {path}")

    def _parent(self, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name

    def _directory(self, path: str) -> _Directory:
        directory = self._root
        for name in path.split("/") if path else ():
            node = directory.names.get(name)
            if not isinstance(node, _Directory):
                raise FileNotFoundError(errno.ENOENT, "no such directory", path)
            directory = node
        return directory


def _paths(directory: _Directory, prefix: str) -> list[str]:
    found = []
    for name in sorted(directory.names):
        node = directory.names[name]
        found.extend([prefix + name] if isinstance(node, Inode) else _paths(node, f"{prefix}{name}/"))
    return found


class SimFile:
    """A file of a SimDisk; follows renames and stays readable after its name is removed."""

    __slots__ = ("_disk", "_inode", "_waiting", "path")

    def __init__(self, disk: SimDisk, path: str, inode: Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._waiting = PendingPieces()  # lost with the process

    @property
    def size(self) -> int:
        return self._waiting[-1].end if self._waiting else len(self._inode.cache)

    @property
    def written(self) -> int:
        return len(self._inode.cache)

    def read(self, position: int, size_bytes: int) -> bytes:
        self._disk._before_read(self.path)
        end = position + size_bytes
        return bytes(self._inode.cache[position:end]) + self._waiting.read(position, end)

    def peek(self, position: int, size_bytes: int) -> bytes:
        """Return what a reader would see, without the faults; for checkers, even of a dead disk."""
        return bytes(self._inode.cache[position : position + size_bytes])

    def peek_durable(self, position: int, size_bytes: int) -> bytes:
        """Return which of these bytes surely survive a power loss."""
        return self._inode.durable[position : position + size_bytes]

    def append(self, data: Buffer) -> None:
        assert not self._waiting, "written before what waits"
        self._disk._write(self._inode, self.path, self.size, data)

    def append_later(self, data: Buffer) -> None:
        self._disk._check_alive()
        self._waiting.add(self.size, data)

    def write_waiting(self) -> None:
        while self._waiting:
            piece = self._waiting[0]
            self._disk._write(self._inode, self.path, piece.position, piece.data)
            self._waiting.wrote(piece)

    def write(self, position: int, data: Buffer) -> None:
        self._disk._write(self._inode, self.path, position, data)

    def write_again(self, position: int, size_bytes: int) -> None:
        self.write(position, self.read(position, size_bytes))

    def truncate(self, size_bytes: int) -> None:
        if size_bytes < self.written or not self._waiting:
            self._disk._truncate(self._inode, self.path, size_bytes)
        self._waiting.cut(size_bytes)

    @property
    def disk(self) -> SimDisk:
        return self._disk

    def is_warm(self, position: int, size_bytes: int) -> bool:
        """Always True: this disk never blocks."""
        return True

    def warm(self, position: int, size_bytes: int) -> None:
        """Nothing to do: all data is in memory."""

    def sync(self) -> None:
        self.write_waiting()
        self._disk._sync(self._inode, self.path)

    def send(self, sock: Any, position: int, size_bytes: int) -> int:
        self._disk._before_read(self.path)
        assert position + size_bytes <= self.written, "sent before it is written"
        return int(sock.send(bytes(self._inode.cache[position : position + size_bytes])))

    def close(self) -> None:
        """Nothing to close: descriptors are not simulated."""
