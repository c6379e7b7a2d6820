"""The choice of a partition for records without an explicit one.

Rules:
- A key goes where Kafka's Java producer would send it: murmur2 of the key bytes, sign bit cleared, modulo the number of
  partitions. So records of a key from both kinds of producers are in the same partition.
- Records without a key stick to one partition until about a batch of bytes went there, then move on (KIP-794), which
  makes fewer and fuller batches than a round robin. Partitions without a leader are skipped.
- `RoundRobin` and any function of the same form may be given instead (`ProducerOptions.partitioner`).
"""

import random
from functools import lru_cache

from ottla.client.metadata import NO_LEADER, TopicInfo
from ottla.model import limits
from ottla.model.java import murmur2


@lru_cache(maxsize=limits.HASHED_KEYS_REMEMBERED)
def _remembered(key: bytes) -> int:
    return murmur2(key) & 0x7FFF_FFFF


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition that the Java producer's default partitioner gives the key."""
    if len(key) <= limits.HASHED_KEY_BYTES_MAX and type(key) is bytes:
        return _remembered(key) % partition_count
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


class StickyPartitions:
    """The partition that keyless records of each topic currently stick to."""

    def __init__(self, rng: random.Random, switch_bytes: int) -> None:
        self._rng = rng
        self._switch_bytes = switch_bytes
        self._current: dict[str, _Stay] = {}

    def choose(self, topic: TopicInfo, size_bytes: int) -> int:
        """Return the partition for a record of this size."""
        stay = self._current.get(topic.name)
        # Changed metadata of the topic may have other leaders, so a partition is chosen anew.
        if stay is None or stay.left_bytes <= 0 or stay.topic is not topic:
            stay = self._current[topic.name] = self._move(topic, stay)
        stay.left_bytes -= size_bytes
        return stay.partition

    def _move(self, topic: TopicInfo, former: "_Stay | None") -> "_Stay":
        available = [each.index for each in topic.partitions if each.leader != NO_LEADER]
        available = available or [each.index for each in topic.partitions]
        if former is not None and former.left_bytes > 0 and former.partition in available:
            return _Stay(topic, former.partition, former.left_bytes)
        others = [each for each in available if former is None or each != former.partition]
        return _Stay(topic, self._rng.choice(others or available), self._switch_bytes)


class _Stay:
    """The partition that keyless records currently go to."""

    __slots__ = ("left_bytes", "partition", "topic")

    def __init__(self, topic: TopicInfo, partition: int, left_bytes: int) -> None:
        self.topic = topic
        self.partition = partition
        self.left_bytes = left_bytes


class RoundRobin:
    """Sends each record to the next partition, whatever its key: `ProducerOptions(partitioner=RoundRobin())`."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partition_count: int) -> int:
        partition = self._next.get(topic, 0) % partition_count
        self._next[topic] = partition + 1
        return partition
