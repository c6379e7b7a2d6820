"""The order in which Java iterates over a hash set of strings.

The messages of Confluent's registry come in this order, and users compare them; so it is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ottla.model.java import java_hash

_SMALLEST = 16


def hash_order(first: Collection[str], more: Iterable[str]) -> list[str]:
    """Return the order of `new HashSet<>(first)` with `more` added."""
    names = dict.fromkeys((*first, *more))
    size = _at_least(max(int(len(first) / 0.75) + 1, _SMALLEST))
    while len(names) > size * 3 // 4:
        size *= 2
    return sorted(names, key=lambda name: _spread(name) & (size - 1))


def map_order(names: Collection[str]) -> list[str]:
    """Return the order of the keys of `new HashMap<>(a map with these names)`."""
    size = _at_least(int(len(names) / 0.75 + 1))
    return sorted(names, key=lambda name: _spread(name) & (size - 1))


def _at_least(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def _spread(text: str) -> int:
    value = java_hash(text)
    return value ^ value >> 16
