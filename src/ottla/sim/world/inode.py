"""The content of one simulated file: the bytes that readers see, the durable bytes, and the pending writes between
them.

A write goes to the page cache (`cache`) and is remembered in `pending` until `sync`. Losing power replays the pending
operations onto the durable bytes, one sector at a time:

- a sector that a pending write touched holds its durable bytes, or those of any later time up to the last write;
  sectors decide independently, so writes are kept, lost or torn at 512-byte boundaries, in any order;
- bytes that the file size covers but no surviving sector wrote read as zeros;
- the size may survive although the data did not (a tail of zeros, as XFS and ext4 leave it);
- a truncation is journalled: if it is lost, everything after it in this file is lost with it;
- optionally a sector that was being written comes back as garbage.

Synced bytes never change, whatever happens to their neighbours in the same sector.
"""

from __future__ import annotations

import random
from collections.abc import Container
from typing import NamedTuple

SECTOR_BYTES = 512


class Write(NamedTuple):
    position: int
    data: bytes


class Truncate(NamedTuple):
    size_bytes: int


class Inode:
    """Content of a file, independent of its name."""

    __slots__ = ("cache", "durable", "pending")

    def __init__(self) -> None:
        self.cache = bytearray()
        self.durable = b""
        self.pending: list[Write | Truncate] = []

    def write(self, position: int, data: bytes) -> None:
        if position > len(self.cache):
            self.cache.extend(bytes(position - len(self.cache)))
        self.cache[position : position + len(data)] = data
        self.pending.append(Write(position, data))

    def truncate(self, size_bytes: int) -> None:
        if size_bytes < len(self.cache):
            del self.cache[size_bytes:]
        else:
            self.cache.extend(bytes(size_bytes - len(self.cache)))
        self.pending.append(Truncate(size_bytes))

    def sync(self) -> None:
        if self.pending:
            self.durable = bytes(self.cache)
            self.pending.clear()

    def forget_dirty(self) -> None:
        """Do what Linux does after a failed fsync: the pages count as clean, although they never became durable."""
        self.pending.clear()

    def lose_power(self, rng: random.Random, garbage_rate: float = 0.0) -> None:
        """Keep an arbitrary part of the pending operations, as the module's fault model allows."""
        if self.pending:
            fate = rng.random()
            if fate < 0.25:
                kept: list[Write | Truncate] = []
            elif fate < 0.40:
                kept = self.pending
            elif fate < 0.65:
                kept = _torn_at_the_end(self.pending, rng)
            else:
                kept = _scattered(self.pending, rng)
            content = bytearray(self.durable)
            _replay(content, kept)
            self._stretch(content, rng)
            if garbage_rate:
                _spoil(content, self.durable, kept, rng, garbage_rate)
            self.durable = bytes(content)
        self.cache = bytearray(self.durable)
        self.pending.clear()

    def _stretch(self, content: bytearray, rng: random.Random) -> None:
        """Sometimes extend the file with zeros: the new size may be journalled before the data."""
        missing = len(self.cache) - len(content)
        if missing > 0 and rng.random() < 0.2:
            content.extend(bytes(rng.randint(1, missing)))

    def flip_bit(self, rng: random.Random, spared: Container[int] = ()) -> int | None:
        """Flip one bit outside the `spared` bytes, in the durable bytes and in the cache; return its byte position."""
        candidates = [position for position in range(len(self.cache)) if position not in spared]
        if not candidates:
            return None
        position = rng.choice(candidates)
        self.cache[position] ^= 1 << rng.randrange(8)
        if position < len(self.durable):
            durable = bytearray(self.durable)
            durable[position] = self.cache[position]
            self.durable = bytes(durable)
        return position


def _replay(content: bytearray, operations: list[Write | Truncate]) -> None:
    for operation in operations:
        if isinstance(operation, Truncate):
            if operation.size_bytes < len(content):
                del content[operation.size_bytes :]
            else:
                content.extend(bytes(operation.size_bytes - len(content)))
            continue
        if operation.position > len(content):
            content.extend(bytes(operation.position - len(content)))
        content[operation.position : operation.position + len(operation.data)] = operation.data


def _sectors(write: Write) -> list[tuple[int, Write]]:
    """Return the write cut at sector boundaries, each part with the number of its sector."""
    parts = []
    position, end = write.position, write.position + len(write.data)
    while position < end:
        sector = position // SECTOR_BYTES
        stop = min(end, (sector + 1) * SECTOR_BYTES)
        parts.append((sector, Write(position, write.data[position - write.position : stop - write.position])))
        position = stop
    return parts


def _torn_at_the_end(pending: list[Write | Truncate], rng: random.Random) -> list[Write | Truncate]:
    """Return what an in-order writeback wrote that stopped somewhere, possibly inside a write."""
    count = rng.randint(0, len(pending))
    kept = pending[:count]
    if count < len(pending):
        following = pending[count]
        if isinstance(following, Write):
            parts = _sectors(following)
            kept.extend(part for _, part in parts[: rng.randint(0, len(parts))])
    return kept


def _scattered(pending: list[Write | Truncate], rng: random.Random) -> list[Write | Truncate]:
    """Return what a writeback in any order wrote: every sector is from its own point in time."""
    moments: dict[int, int] = {}
    kept: list[Write | Truncate] = []
    for moment, operation in enumerate(pending):
        if isinstance(operation, Truncate):
            if rng.random() < 0.5:
                break
            kept.append(operation)
            continue
        for sector, part in _sectors(operation):
            last = moments.get(sector)
            if last is None:
                last = moments[sector] = rng.choice((-1, len(pending), rng.randint(-1, len(pending))))
            if moment <= last:
                kept.append(part)
    return kept


def _spoil(content: bytearray, durable: bytes, kept: list[Write | Truncate], rng: random.Random, rate: float) -> None:
    """Turn some sectors that were being written into garbage; bytes that were durable already stay as they are."""
    for operation in kept:
        if not isinstance(operation, Write) or rng.random() >= rate:
            continue
        _, (position, data) = rng.choice(_sectors(operation)) if operation.data else (0, operation)
        for at in range(position, min(position + len(data), len(content))):
            if content[at : at + 1] != durable[at : at + 1]:
                content[at] = rng.randrange(256)
