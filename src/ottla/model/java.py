"""What Java's strings and Kafka's tables of them decide that clients can see: partitions of keys, and orders.

Kafka's coordinators list groups and members in the order of their hash tables. It means nothing, but tools and tests
compare what they see, so it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from ottla.model import limits

T = TypeVar("T")

_INT32 = 0xFFFF_FFFF
_INT64 = 0xFFFF_FFFF_FFFF_FFFF
_SIGN = 1 << 31
_GOLDEN = 11_400_714_819_323_198_485  # 2 ** 64 divided by the golden ratio: Knuth's multiplicative hashing


@lru_cache(limits.KEY_HASHES_MAX)
def java_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned number: over UTF-16 code units."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & _INT32
    return value


def java_abs(unsigned: int) -> int:
    """What Kafka makes of a hash that Java takes for negative: its absolute value, and zero of the one without."""
    return unsigned if unsigned < _SIGN else (_INT32 + 1 - unsigned) % _SIGN


def table_order(entries: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """The order in which Kafka's coordinators walk a table (`TimelineHashMap`) that these were put into one by one."""
    known = list(entries)[::-1]  # what shares a slot comes back in reverse
    # A table begins with two slots and doubles before an entry that makes three quarters of the entries exceed them.
    bits = 1
    while len(known) * 3 > 4 << bits:
        bits += 1

    def slot(entry: T) -> int:
        value = java_hash(name(entry))
        signed = value - (_INT32 + 1) if value >= _SIGN else value
        return (signed * _GOLDEN & _INT64) >> (64 - bits)

    return sorted(known, key=slot)
