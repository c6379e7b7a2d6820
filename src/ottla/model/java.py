"""Hashes and orders of Kafka's classes, where others can see their results.

Kafka's coordinators list groups and members in the order of their hash tables. That order has no meaning, but tools and
tests compare it, so Ottla produces the same. Which partition a key belongs to, and which partition of the topic of
remote metadata tells of a partition, is found by murmur2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from struct import unpack_from
from typing import TypeVar

from ottla.model import limits

T = TypeVar("T")

_INT32 = 0xFFFF_FFFF
_INT64 = 0xFFFF_FFFF_FFFF_FFFF
_SIGN = 1 << 31
_GOLDEN = 11_400_714_819_323_198_485  # 2 ** 64 divided by the golden ratio: Knuth's multiplicative hashing
_MURMUR_SEED = 0x9747B28C
_MURMUR_FACTOR = 0x5BD1E995


@lru_cache(limits.KEY_HASHES_MAX)
def java_hash(text: str) -> int:
    """Return `String.hashCode`, computed over UTF-16 code units, as an unsigned number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & _INT32
    return value


def java_abs(unsigned: int) -> int:
    """Return the absolute value of a hash as Kafka computes it: 0 for the smallest integer, which has none."""
    return unsigned if unsigned < _SIGN else (_INT32 + 1 - unsigned) % _SIGN


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash of Kafka's Java client, as an unsigned number."""
    size = len(data)
    h = (_MURMUR_SEED ^ size) & _INT32
    words = size >> 2
    for k in unpack_from(f"<{words}I", data):
        k = k * _MURMUR_FACTOR & _INT32
        h = (h * _MURMUR_FACTOR & _INT32) ^ ((k ^ k >> 24) * _MURMUR_FACTOR & _INT32)
    if size & 3:
        h ^= int.from_bytes(data[words << 2 :], "little")
        h = h * _MURMUR_FACTOR & _INT32
    h ^= h >> 13
    h = h * _MURMUR_FACTOR & _INT32
    return h ^ h >> 15


def table_order(entries: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """Return entries in the order in which Kafka's `TimelineHashMap` lists them after single insertions."""
    known = list(entries)[::-1]  # entries of one slot come out in reverse order
    bits = _bits(len(known))
    return sorted(known, key=lambda entry: _slot(name(entry), bits))


def in_table_order(entries: Sequence[T], name: Callable[[T], str], at_once: int) -> Generator[None, None, list[T]]:
    """Like `table_order`, for very many entries, in steps of `at_once` entries each."""
    bits = _bits(len(entries))
    slots: dict[int, list[T]] = {}
    for position, entry in enumerate(reversed(entries), 1):
        slots.setdefault(_slot(name(entry), bits), []).append(entry)
        if position % at_once == 0:
            yield
    ordered: list[T] = []
    for first in range(0, 1 << bits, 10 * at_once):  # looking at a slot costs little
        if first:
            yield
        for slot in range(first, first + 10 * at_once):
            ordered += slots.pop(slot, ())
    return ordered


def _bits(count: int) -> int:
    """Return the log2 of the slots: a table begins with two, and doubles when 3/4 of its entries exceed its slots."""
    bits = 1
    while count * 3 > 4 << bits:
        bits += 1
    return bits


def _slot(name: str, bits: int) -> int:
    value = java_hash(name)
    signed = value - (_INT32 + 1) if value >= _SIGN else value
    return (signed * _GOLDEN & _INT64) >> (64 - bits)
