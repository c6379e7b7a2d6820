"""Whether a map has a key twice: a leaf function of the compiled loop.

The last entry of a key counts. Maps with a repeated key are rare, and the library decodes them; here they are only
detected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Longs, compiled, inlined
from ottla.columns.shape import BASE, DATA, KIND, VAR, W1, W4, W8, Out

_FEW = 8  # so many keys are compared with each other; more go to a table by their hashes
_PROBES_PER_KEY = 16  # keys with more collisions than that were chosen to collide


@inlined
def bytes_of(out: Out, column: Any, entry: Any) -> tuple[Any, Any]:
    """Return where the bytes of a key are, and how many."""
    base = out.table[column, BASE] + entry
    kind = out.table[column, KIND]
    if kind == VAR:
        begin = np.int64(out.a32[base])
        return out.table[column, DATA] + begin, np.int64(out.a32[base + 1]) - begin
    width = 1 if kind == W1 else (4 if kind == W4 else (8 if kind == W8 else 16))
    return base * width, np.int64(width)


@compiled
def are_equal(out: Out, column: Any, one: Any, other: Any) -> bool:
    """Return whether two keys are equal."""
    at, size = bytes_of(out, column, one)
    other_at, other_size = bytes_of(out, column, other)
    if size != other_size:
        return False
    same = True
    for index in range(size):
        same = same and out.a8[at + index] == out.a8[other_at + index]
    return same


@compiled
def maybe_twice(out: Out, column: Any, first: Any, after: Any, seen: Longs) -> bool:
    """Return whether some of the keys from `first` to `after` of a column are equal (or collide too often to tell)."""
    if after - first <= _FEW:
        for one in range(first + 1, after):
            for other in range(first, one):
                if are_equal(out, column, one, other):
                    return True
        return False
    room = np.int64(64)
    while room < 2 * (after - first):
        room *= 2
    for place in range(room):
        seen[place] = -1
    left: Any = (after - first) * _PROBES_PER_KEY
    for entry in range(first, after):
        at, size = bytes_of(out, column, entry)
        mixed = np.int64(2166136261)
        for index in range(size):
            mixed = ((mixed ^ np.int64(out.a8[at + index])) * np.int64(16777619)) & np.int64(0xFFFFFFFF)
        slot = mixed & (room - 1)
        while seen[slot] >= 0:
            left -= 1
            if left < 0 or are_equal(out, column, entry, seen[slot]):
                return True
            slot = (slot + 1) & (room - 1)
        seen[slot] = entry
    return False
