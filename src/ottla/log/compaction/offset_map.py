"""The latest offset of each key, for compaction, in a fixed budget of bytes.

Open addressing over three flat arrays: a 16-byte hash of the key (as two halves) and the offset, 24 bytes a slot as in
Kafka, and nothing per entry on Python's heap. The table starts small and doubles; the budget covers the moment of
doubling, when the old and the new table exist together. Keys are compared by their hash only: with 128 bits two keys of
one log are not equal by chance.

Rules:
- `full` says when the load factor is reached; the caller stops there, cleans what is mapped, and leaves the rest to
  another round.
- `latest_offset` is the last offset that the map covers: a record behind it must be kept whatever the map says.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from struct import Struct

SLOT_BYTES = 24
_SLOTS_MIN = 64
_HALVES = Struct("<QQ")


class OffsetMap:
    __slots__ = ("_high", "_limit", "_low", "_mask", "_offsets", "_slots_max", "latest_offset", "load_factor", "size")

    def __init__(self, budget_bytes: int, load_factor: float = 0.9) -> None:
        if not 0 < load_factor < 1:
            raise ValueError(f"a load factor lies between 0 and 1, not {load_factor}")
        self.load_factor = load_factor
        slots = _SLOTS_MIN
        # Doubling to 2n slots needs memory for 3n slots for a moment.
        while 3 * slots * SLOT_BYTES <= budget_bytes:
            slots *= 2
        self._slots_max = slots
        self.latest_offset = -1
        self.size = 0
        self._allocate(_SLOTS_MIN)

    def _allocate(self, slots: int) -> None:
        self._mask = slots - 1
        self._limit = int(slots * self.load_factor)
        self._low = array("Q", bytes(8 * slots))
        self._high = array("Q", bytes(8 * slots))
        self._offsets = array("q", bytes(8 * slots))  # offset + 1; 0 is an empty slot

    @property
    def full(self) -> bool:
        """Whether a new key would go above the load factor of the largest table."""
        return self.size >= self._limit and self._mask + 1 >= self._slots_max

    @property
    def capacity(self) -> int:
        """The number of keys that the map can hold before it is full."""
        return int(self._slots_max * self.load_factor)

    def put(self, key: bytes, offset: int) -> None:
        """Set the latest offset of `key`. Offsets of one key must come in ascending order."""
        low, high = _HALVES.unpack(blake2b(key, digest_size=16).digest())
        slot = self._find(low, high)
        if not self._offsets[slot]:
            if self.size >= self._limit:
                slot = self._make_room(slot, low, high)
            self._low[slot] = low
            self._high[slot] = high
            self.size += 1
        self._offsets[slot] = offset + 1

    def get(self, key: bytes) -> int:
        """Return the latest offset of `key`, or -1."""
        low, high = _HALVES.unpack(blake2b(key, digest_size=16).digest())
        return self._offsets[self._find(low, high)] - 1

    def clear(self) -> None:
        self.latest_offset = -1
        self.size = 0
        self._allocate(_SLOTS_MIN)

    def _find(self, low: int, high: int) -> int:
        """Return the slot that holds the hash, or the empty slot where it would go."""
        mask, offsets, lows = self._mask, self._offsets, self._low
        slot = low & mask
        while offsets[slot] and (lows[slot] != low or self._high[slot] != high):
            slot = (slot + 1) & mask
        return slot

    def _make_room(self, slot: int, low: int, high: int) -> int:
        """Double the table while the budget allows; one slot must stay empty, or searches would not end."""
        if self._mask + 1 < self._slots_max:
            self._grow()
            return self._find(low, high)
        if self.size >= self._mask:
            raise OverflowError(f"the offset map is full: {self.size} keys")
        return slot

    def _grow(self) -> None:
        lows, highs, offsets = self._low, self._high, self._offsets
        self._allocate(2 * (self._mask + 1))
        mask, new_low, new_high, new_offsets = self._mask, self._low, self._high, self._offsets
        for low, high, offset in zip(lows, highs, offsets, strict=True):
            if offset:
                slot = low & mask
                while new_offsets[slot]:
                    slot = (slot + 1) & mask
                new_low[slot] = low
                new_high[slot] = high
                new_offsets[slot] = offset
