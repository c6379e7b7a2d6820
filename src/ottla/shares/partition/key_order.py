"""Lanes: for each key, the records that are not done yet, in order; only the first of a lane may be delivered.

Records without a key have no lane. Keys are only compared, so a long key is stored as its digest.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from hashlib import blake2b

_DIGEST_BYTES = 16


class Lanes:
    def __init__(self) -> None:
        self._key_of: dict[int, bytes] = {}
        self._offsets: dict[bytes, list[int]] = {}

    def __len__(self) -> int:
        return len(self._key_of)

    def enter(self, offset: int, key: bytes) -> None:
        """Add a record to the lane of its key; a known record keeps its place."""
        if offset in self._key_of:
            return
        if len(key) > _DIGEST_BYTES:
            key = b"\0" + blake2b(key, digest_size=_DIGEST_BYTES).digest()
        self._key_of[offset] = key
        lane = self._offsets.setdefault(key, [])
        if not lane or lane[-1] < offset:
            lane.append(offset)
        else:
            insort(lane, offset)

    def first_in_line(self, offset: int) -> bool:
        key = self._key_of.get(offset)
        return key is None or self._offsets[key][0] == offset

    def leave(self, first: int, last: int) -> None:
        """Remove records that are done."""
        offsets: Iterable[int] = range(first, last + 1)
        if last - first >= len(self._key_of):
            offsets = [offset for offset in self._key_of if first <= offset <= last]
        for offset in offsets:
            key = self._key_of.pop(offset, None)
            if key is None:
                continue
            lane = self._offsets[key]
            lane.remove(offset)
            if not lane:
                del self._offsets[key]
