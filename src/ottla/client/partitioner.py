"""Which partition a record goes to when the caller does not say.

Rules:
- A key goes where Kafka's Java producer would send it: murmur2 of the key bytes, sign bit cleared, modulo the number of
  partitions. Records written by both kinds of producer therefore meet in one partition.
- Records without a key stick to one partition until about a batch of bytes went there, then move on (KIP-794), which
  makes fewer and fuller batches than a round robin.
"""

import random
from collections.abc import Sequence

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash of Kafka's Java client, as an unsigned number."""
    size = len(data)
    h = (_SEED ^ size) & _MASK
    whole = size & ~3
    for position in range(0, whole, 4):
        k = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        k ^= k >> 24
        h = (h * _M & _MASK) ^ (k * _M & _MASK)
    if whole < size:
        h ^= int.from_bytes(data[whole:], "little")
        h = h * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition that the Java producer's default partitioner gives the key."""
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


class StickyPartitions:
    """The partition that keyless records of each topic currently stick to."""

    def __init__(self, rng: random.Random, switch_bytes: int) -> None:
        self._rng = rng
        self._switch_bytes = switch_bytes
        self._current: dict[str, tuple[int, int]] = {}  # topic -> (partition, bytes sent there)

    def choose(self, topic: str, available: Sequence[int], size_bytes: int) -> int:
        """Pick for a record of this size; `available` are the partitions that have a leader."""
        partition, sent_bytes = self._current.get(topic, (-1, self._switch_bytes))
        if sent_bytes >= self._switch_bytes or partition not in available:
            others = [each for each in available if each != partition] or list(available)
            partition, sent_bytes = self._rng.choice(others), 0
        self._current[topic] = (partition, sent_bytes + size_bytes)
        return partition
