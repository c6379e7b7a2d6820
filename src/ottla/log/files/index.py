"""The two sparse indexes of a segment: offset -> file position (8-byte entries), timestamp -> offset (12-byte entries).

Rules:
- Entries are appended to arrays in memory and written to the file in blocks, at the latest when the segment is rolled,
  flushed or closed. Nothing is lost by that: after an unclean stop every segment above the recovery point gets its
  indexes rebuilt, and the recovery point only moves after the files below it were written and synced. It saves a system
  call per 4 KiB of log.
- No mmap (Kafka's two maps per segment are what limits its partitions): lookups search the tail in memory, else `read`
  one small block, which is cached until the next lookup outside it or `forget`.
- An offset entry holds the *last* offset of the batch that starts at its position; a time entry the largest timestamp
  so far and the last offset of the batch that carries it. Kafka's DumpLogSegments checks exactly that.
- Files that a killed Kafka left behind are padded with zeros to segment.index.bytes; the padding is recognised and
  ignored.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import ClassVar

from ottla.log.files.disk import Directory, File, StorageError

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12

# Entries kept in memory after they were written (for lookups near the end), and how many are gathered before a write.
_TAIL_KEPT = 128
_TAIL_MAX = 512
# Entries read at once when a lookup leaves the tail: 128 entries cover 512 KiB of log at the default interval.
_BLOCK = 128

_OFFSET_ENTRY = Struct(">II")
_TIME_ENTRY = Struct(">qI")
_SWAP_BYTES = sys.byteorder == "little"


class SparseIndex:
    """The common part of both indexes: a file of entries of one size, the last of which may still be in memory only."""

    __slots__ = ("_directory", "_file", "_written", "base_offset", "name")
    entry_bytes: ClassVar[int]

    def __init__(self, directory: Directory, name: str, base_offset: int) -> None:
        self._directory = directory
        self.name = name
        self.base_offset = base_offset
        self._file: File | None = None
        self._written = 0  # the number of entries in the file

    def load(self) -> bool:
        """Take over an existing file; False if there is none or its size is no multiple of an entry."""
        try:
            file = self._directory.open(self.name)
        except FileNotFoundError:
            return False
        self._file = file
        size = file.size
        self._written = _without_padding(file, size // self.entry_bytes, self.entry_bytes)
        return size % self.entry_bytes == 0

    def reset(self) -> None:
        self._cut(0)

    def _cut(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        raise NotImplementedError

    def write_out(self) -> None:
        """Write all entries to the file (create it if absent, cut any padding)."""
        raise NotImplementedError

    def _cut_file(self) -> None:
        """Truncate the file to the entries that it holds."""
        file = self._file
        if file is not None and file.size != self._written * self.entry_bytes:
            file.truncate(self._written * self.entry_bytes)

    def _write_out_now(self) -> bool:
        """Write out in the middle of an append, which neither fails on a full disk nor waits for a slow one.

        The batch is in the log already; the entries stay in memory.
        """
        if self._directory.disk.slow:
            return False
        try:
            self.write_out()
        except StorageError:
            return False
        return True

    def file(self) -> File | None:
        """Return the file if it was ever written or loaded; a flush has to sync it."""
        return self._file

    def _opened(self, *, create: bool = False) -> File:
        if self._file is None:
            self._file = self._directory.open(self.name, create=create)
        return self._file


class OffsetIndex(SparseIndex):
    """The position in the segment's file from which on to search for an offset."""

    __slots__ = (
        "_block_first",
        "_block_offsets",
        "_block_positions",
        "_offsets",
        "_positions",
        "_tail_first",
        "count",
    )

    entry_bytes = OFFSET_ENTRY_BYTES

    def __init__(self, directory: Directory, name: str, base_offset: int) -> None:
        super().__init__(directory, name, base_offset)
        self.count = 0  # all entries
        self._tail_first = 0  # number of the first entry in memory
        self._offsets = array("I")
        self._positions = array("I")
        self._block_first = -1
        self._block_offsets = self._block_positions = array("I")

    def load(self) -> bool:
        makes_sense = super().load()
        self.count = self._tail_first = self._written
        return makes_sense

    def append(self, offset: int, position: int) -> None:
        offsets = self._offsets
        offsets.append(offset - self.base_offset)
        self._positions.append(position)
        self.count += 1
        if len(offsets) >= _TAIL_MAX and self._write_out_now():
            drop = len(offsets) - _TAIL_KEPT
            del offsets[:drop], self._positions[:drop]
            self._tail_first += drop

    def lookup(self, offset: int) -> int:
        """Return the position of the last entry at or below `offset`; 0 if there is none."""
        relative = offset - self.base_offset
        tail = self._offsets
        if tail and relative >= tail[0]:
            return self._positions[bisect_right(tail, relative) - 1]
        if not self._tail_first:
            return 0
        block = self._block_offsets
        if self._block_first < 0 or relative < block[0] or relative > block[-1]:
            self._load_block(relative)
            block = self._block_offsets
        at = bisect_right(block, relative)
        return self._block_positions[at - 1] if at else 0

    def offset_behind(self, position: int) -> int | None:
        """Return the offset of the first entry at or behind file position `position`; None if there is none."""
        number = bisect_left(range(self.count), position, key=lambda number: self.entry(number)[1])
        return self.entry(number)[0] if number < self.count else None

    def _load_block(self, relative: int) -> None:
        low, high = 0, self._tail_first
        while high - low > _BLOCK:
            middle = (low + high) // 2
            if self.entry(middle)[0] - self.base_offset <= relative:
                low = middle
            else:
                high = middle
        # One entry beyond the searched range, so that the next sequential lookup still finds the block's end inside.
        data = self._opened().read(low * OFFSET_ENTRY_BYTES, (_BLOCK + 1) * OFFSET_ENTRY_BYTES)
        data = data[: (self._tail_first - low) * OFFSET_ENTRY_BYTES]
        values = array("I", data)
        if _SWAP_BYTES:
            values.byteswap()
        self._block_first = low
        self._block_offsets = values[0::2]
        self._block_positions = values[1::2]

    def entry(self, number: int) -> tuple[int, int]:
        """Return (offset, position) of one entry."""
        if number >= self._tail_first:
            at = number - self._tail_first
            return self.base_offset + self._offsets[at], self._positions[at]
        data = self._opened().read(number * OFFSET_ENTRY_BYTES, OFFSET_ENTRY_BYTES)
        relative, position = _OFFSET_ENTRY.unpack(data)
        return self.base_offset + relative, position

    def last(self) -> tuple[int, int]:
        return self.entry(self.count - 1) if self.count else (self.base_offset, 0)

    def truncate(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        self._cut(bisect_left(range(self.count), offset, key=lambda number: self.entry(number)[0]))

    def _cut(self, count: int) -> None:
        if count < self._tail_first:
            del self._offsets[:], self._positions[:]
            self._tail_first = count
        else:
            del self._offsets[count - self._tail_first :], self._positions[count - self._tail_first :]
        self.count = count
        self._written = min(self._written, count)
        self.forget()
        self._cut_file()

    def write_out(self) -> None:
        file = self._opened(create=True)
        if self._written < self.count:
            first = self._written - self._tail_first
            values = array("I", bytes((self.count - self._written) * OFFSET_ENTRY_BYTES))
            values[0::2] = self._offsets[first:]
            values[1::2] = self._positions[first:]
            if _SWAP_BYTES:
                values.byteswap()
            file.write(self._written * OFFSET_ENTRY_BYTES, values.tobytes())
            self._written = self.count
        self._cut_file()

    @property
    def complete(self) -> bool:
        """Whether the file exists and holds every entry."""
        return self._file is not None and self._file.size == self.count * OFFSET_ENTRY_BYTES

    def retire(self) -> None:
        """Write everything to the file and keep nothing in memory, because the segment was rolled."""
        self.write_out()
        del self._offsets[:], self._positions[:]
        self._tail_first = self.count
        self.forget()
        self._opened().close()

    def forget(self) -> None:
        self._block_first = -1
        self._block_offsets = self._block_positions = array("I")


class TimeIndex(SparseIndex):
    """Largest timestamp so far -> offset; used by ListOffsets and retention only, so it is kept simple."""

    __slots__ = ("_last", "_pending")
    entry_bytes = TIME_ENTRY_BYTES

    def __init__(self, directory: Directory, name: str, base_offset: int) -> None:
        super().__init__(directory, name, base_offset)
        self._pending = bytearray()
        self._last: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        return self._written + len(self._pending) // TIME_ENTRY_BYTES

    def append(self, timestamp: int, offset: int) -> None:
        """Add a new maximum; a timestamp that is not larger is ignored (entries are strictly ascending)."""
        if timestamp <= self.last()[0]:
            return
        self._pending += _TIME_ENTRY.pack(timestamp, offset - self.base_offset)
        self._last = (timestamp, offset)
        if len(self._pending) >= _TAIL_MAX * TIME_ENTRY_BYTES:
            self._write_out_now()

    def entry(self, number: int) -> tuple[int, int]:
        """Return (timestamp, offset) of one entry."""
        if number >= self._written:
            timestamp, relative = _TIME_ENTRY.unpack_from(self._pending, (number - self._written) * TIME_ENTRY_BYTES)
        else:
            data = self._opened().read(number * TIME_ENTRY_BYTES, TIME_ENTRY_BYTES)
            timestamp, relative = _TIME_ENTRY.unpack(data)
        return timestamp, self.base_offset + relative

    def last(self) -> tuple[int, int]:
        last = self._last
        if last is None:
            count = self.count
            last = self._last = self.entry(count - 1) if count else (-1, self.base_offset)
        return last

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """Return the last entry whose timestamp is at or below `timestamp`."""
        behind = bisect_right(range(self.count), timestamp, key=lambda number: self.entry(number)[0])
        return self.entry(behind - 1) if behind else (-1, self.base_offset)

    def truncate(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        self._cut(bisect_left(range(self.count), offset, key=lambda number: self.entry(number)[1]))

    def _cut(self, count: int) -> None:
        if count < self._written:
            self._written = count
            self._pending.clear()
        else:
            del self._pending[(count - self._written) * TIME_ENTRY_BYTES :]
        self._last = None
        self._cut_file()

    def write_out(self) -> None:
        file = self._opened(create=True)
        if self._pending:
            file.write(self._written * TIME_ENTRY_BYTES, self._pending)
            self._written = self.count
            self._pending = bytearray()
        self._cut_file()

    @property
    def complete(self) -> bool:
        return self._file is not None and self._file.size == self.count * TIME_ENTRY_BYTES

    def retire(self) -> None:
        self.write_out()
        self._opened().close()


def _without_padding(file: File, count: int, entry_bytes: int) -> int:
    """Return how many leading entries are real: the padding of a killed Kafka is all zeros, no real entry is."""
    if not count or any(file.read((count - 1) * entry_bytes, entry_bytes)):
        return count
    return bisect_left(range(count), True, key=lambda number: not any(file.read(number * entry_bytes, entry_bytes)))
