"""The transaction index of a segment (`.txnindex`): one entry per transaction whose abort marker lies in the segment.

Entry (34 bytes, Kafka's version 0): version i16 | producer id i64 | first offset i64 | last offset i64 | last stable
offset i64. The file exists only where a transaction was aborted; entries are in order of their markers, and few, so
they are read as a whole.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from ottla.log.disk import Directory, File, read_all

ENTRY_BYTES = 34
_ENTRY = Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    __slots__ = ("_directory", "_file", "name")

    def __init__(self, directory: Directory, name: str) -> None:
        self._directory = directory
        self.name = name
        self._file: File | None = None

    def load(self) -> bool:
        """Take over an existing file; False if its size makes no sense (then the segment is scanned anew)."""
        try:
            self._file = self._directory.open(self.name)
        except FileNotFoundError:
            return True
        return self._file.size % ENTRY_BYTES == 0

    def append(self, txn: AbortedTxn) -> None:
        if self._file is None:
            self._file = self._directory.open(self.name, create=True)
        self._file.append(_ENTRY.pack(_VERSION, *txn))

    def entries(self) -> list[AbortedTxn]:
        if self._file is None or not self._file.size:
            return []
        data = read_all(self._file)
        whole = len(data) - len(data) % ENTRY_BYTES
        return [AbortedTxn(*fields[1:]) for fields in _ENTRY.iter_unpack(data[:whole])]

    def collect(self, start: int, end: int, found: list[AbortedTxn]) -> bool:
        """Add the transactions that overlap [start, end); True when no later segment can hold more."""
        for txn in self.entries():
            if txn.last_offset >= start and txn.first_offset < end:
                found.append(txn)
            if txn.last_stable_offset >= end:
                return True
        return False

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose marker lies at or above `offset`."""
        if self._file is None:
            return
        kept = sum(txn.last_offset < offset for txn in self.entries())
        self._file.truncate(kept * ENTRY_BYTES)

    def reset(self) -> None:
        if self._file is not None:
            self._file.truncate(0)

    def retire(self) -> None:
        if self._file is not None:
            self._file.close()

    def file(self) -> File | None:
        return self._file
