"""The transaction index of a segment (`.txnindex`): one entry per transaction whose abort marker lies in the segment.

Entry (34 bytes, Kafka's version 0): version i16 | producer id i64 | first offset i64 | last offset i64 | last stable
offset i64. The file exists only if a transaction was aborted.

Rules:
- Entries are in the order of their markers, so their last offsets ascend, and so do their last stable offsets.
- A segment may hold millions of entries. Only compaction reads all of them: a search by the marker's offset is a
  bisection, and of each full block of entries two numbers are kept in memory once it was read (`AbortedBlock`), by
  which the search for a transaction that was aborted much later can skip the block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

from ottla.log.files.disk import Directory, File
from ottla.model.ids import ProducerId

ENTRY_BYTES = 34
_ENTRY = Struct(">hqqqq")
_VERSION = 0
BLOCK_ENTRIES = 512
# The first offsets of a block, and the last stable offset of its last entry.
_FIRST_OFFSETS = Struct(">" + "10xq16x" * BLOCK_ENTRIES)
_LAST_STABLE = Struct(">q")


class AbortedTxn(NamedTuple):
    producer_id: ProducerId
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedBlock(NamedTuple):
    """A block's summary: its transactions begin from `first_offset` on, all later ones from `last_stable_offset` on."""

    first_offset: int
    last_stable_offset: int


class AbortedIndex:
    __slots__ = ("_directory", "_file", "_firsts", "_stables", "count", "name")

    def __init__(self, directory: Directory, name: str) -> None:
        self._directory = directory
        self.name = name
        self.count = 0
        self._file: File | None = None
        # One number for each block that was read so far, from the first one on without a gap.
        self._firsts = array("q")
        self._stables = array("q")

    def load(self) -> bool:
        """Take over an existing file; False if its size is no multiple of an entry (the segment is then scanned)."""
        try:
            self._file = self._directory.open(self.name)
        except FileNotFoundError:
            return True
        self.count = self._file.size // ENTRY_BYTES
        return self._file.size % ENTRY_BYTES == 0

    def append(self, txn: AbortedTxn) -> None:
        if self._file is None:
            self._file = self._directory.open(self.name, create=True)
        self._file.append(_ENTRY.pack(_VERSION, *txn))
        self.count += 1

    def entries(self, first: int = 0, end: int | None = None) -> list[AbortedTxn]:
        """Return the entries with the numbers from `first` to below `end`."""
        end = self.count if end is None else min(end, self.count)
        if self._file is None or first >= end:
            return []
        data = self._file.read(first * ENTRY_BYTES, (end - first) * ENTRY_BYTES)
        return [AbortedTxn(*fields[1:]) for fields in _ENTRY.iter_unpack(data)]

    def entry(self, number: int) -> AbortedTxn:
        return self.entries(number, number + 1)[0]

    def number_at(self, offset: int) -> int:
        """Return the number of the first entry whose marker lies at or above `offset`; `count` if there is none."""
        return bisect_left(range(self.count), offset, key=lambda number: self.entry(number).last_offset)

    # --- blocks

    @property
    def known_blocks(self) -> int:
        """The number of blocks, from the first on, whose summary (`block`) needs no read."""
        return len(self._firsts)

    def block(self, number: int) -> AbortedBlock:
        return AbortedBlock(self._firsts[number], self._stables[number])

    def summarize_next_block(self) -> None:
        """Read the next block, which must be full, and keep its summary for `block`."""
        assert self._file is not None, "an entry has been written"
        size_bytes = BLOCK_ENTRIES * ENTRY_BYTES
        data = self._file.read(len(self._firsts) * size_bytes, size_bytes)
        self._firsts.append(min(_FIRST_OFFSETS.unpack(data)))
        self._stables.append(_LAST_STABLE.unpack_from(data, size_bytes - _LAST_STABLE.size)[0])

    # --- changing

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose marker lies at or above `offset`."""
        if self._file is not None:
            self._cut(self._file, self.number_at(offset))

    def reset(self) -> None:
        if self._file is not None:
            self._cut(self._file, 0)

    def _cut(self, file: File, count: int) -> None:
        if file.size != count * ENTRY_BYTES:
            file.truncate(count * ENTRY_BYTES)
        self.count = count
        del self._firsts[count // BLOCK_ENTRIES :], self._stables[count // BLOCK_ENTRIES :]

    def retire(self) -> None:
        if self._file is not None:
            self._file.close()

    def file(self) -> File | None:
        return self._file
