"""Salted hot keys, the producer's side: spreads one busy key over several partitions, and no other keys.

A key that carries a large part of the traffic makes one partition busy and its consumer late, however many partitions
there are. A hot key is therefore divided into `shards`: its records go round-robin over that many partitions. The key
itself does not change, so every consumer sees it as it is; the header `ottla.salt` numbers the records of the key, and
`client.consumer.salted_merge` restores the order from that.

Semantics:
- Shard 0 is the key's ordinary partition; shard s lies s/shards of the way around. Record n of a hot key goes to shard
  n mod shards.
- The header counts per producer (`source`), topic and key, from 0. Order is restored per producer; records of different
  producers have no defined order anyway.
- A key that was found to be hot stays hot as long as the producer lives. Its earlier records lie, unsalted, before
  number 0 in shard 0, so a merge that waits for number 0 has seen them: nothing is overtaken when a key gets hot.
- A record that is never delivered (given up, or part of an aborted transaction) would be a gap that the merge has to
  wait out. The producer then begins again with a new source and number 0; order across that point is not kept.
- A compacted topic keeps the latest record of a key per partition, hence up to one per shard: do not salt there.

Hot keys are found by exact counting in bounded memory: `SpaceSaving` has `counters` counters, never underestimates, and
knows by how much it may overestimate. A key is hot when it surely has `detect` of the records in the present window.
The only random value is the name of the source.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from struct import Struct
from typing import NamedTuple

from ottla.client.producer.partitioner import partition_of_key
from ottla.model import limits

SALT_HEADER = "ottla.salt"
_SALT = Struct(">QQHH")
_SOURCE_BITS = 64


class Salt(NamedTuple):
    """The contents of the header: the record is the `number`-th of its key by this source, which
    uses so many shards.
    """

    source: int
    number: int
    shard: int
    shards: int

    def encode(self) -> bytes:
        return _SALT.pack(*self)

    @classmethod
    def decode(cls, content: bytes | None) -> "Salt | None":
        """Return the decoded header; None if it is not one of ours."""
        if content is None or len(content) != _SALT.size:
            return None
        salt = cls._make(_SALT.unpack(content))
        return salt if salt.shards > 0 and salt.shard == salt.number % salt.shards else None


@dataclass(frozen=True, slots=True)
class SaltedKeys:
    """The keys that are spread, and over how many shards.

    hot       keys known to be hot, with the number of shards of each
    detect    the share of a window's records that makes a key hot by itself (0.05: every twentieth); None: never
    shards    the number of shards of keys that were detected
    counters  how many keys are counted at a time; keys with a share above 1/counters are always detected
    window    after so many records all counts are halved, so that old records count less
    """

    hot: Mapping[bytes, int] = field(default_factory=dict)
    detect: float | None = None
    shards: int = 8
    counters: int = 256
    window: int = 10_000

    def __post_init__(self) -> None:
        if not all(1 <= each <= limits.SALT_SHARDS_MAX for each in (self.shards, *self.hot.values())):
            raise ValueError(f"a key has between 1 and {limits.SALT_SHARDS_MAX} shards")
        if not 1 <= self.counters <= limits.HOT_KEY_COUNTERS_MAX:
            raise ValueError(f"between 1 and {limits.HOT_KEY_COUNTERS_MAX} keys are watched, not {self.counters}")
        if self.detect is not None and not 1 / self.counters < self.detect <= 1:
            raise ValueError("detect is a share of the records, above 1/counters")


class SpaceSaving:
    """The most frequent items of a stream in bounded memory (Metwally, Agrawal, El Abbadi 2005).

    An item without a counter takes over the smallest one, and that counter's count as its possible error.
    """

    def __init__(self, counters: int) -> None:
        self._counters = counters
        self._counts: dict[bytes, tuple[int, int]] = {}  # item -> (count, error)
        self._smallest: list[tuple[int, bytes]] = []  # a heap; counts in it may lag behind
        self.total = 0

    def add(self, item: bytes) -> int:
        """Count the item once more; return the least number of times that it occurred."""
        self.total += 1
        known = self._counts.get(item)
        if known is not None:
            self._counts[item] = (known[0] + 1, known[1])
            return known[0] + 1 - known[1]
        error = self._evict() if len(self._counts) >= self._counters else 0
        self._counts[item] = (error + 1, error)
        heapq.heappush(self._smallest, (error + 1, item))
        return 1

    def top(self, most: int) -> list[tuple[bytes, int]]:
        """Return the most frequent items, each with the least number of times that it occurred."""
        least = [(item, count - error) for item, (count, error) in self._counts.items()]
        return heapq.nsmallest(most, least, key=lambda each: (-each[1], each[0]))

    def halve(self) -> None:
        """Halve all counts, so that old items count less."""
        self.total //= 2
        self._counts = {
            item: (count // 2, error // 2) for item, (count, error) in self._counts.items() if count // 2 > 0
        }
        self._smallest = [(count, item) for item, (count, _) in self._counts.items()]
        heapq.heapify(self._smallest)

    def _evict(self) -> int:
        while True:
            count, item = self._smallest[0]
            present, _ = self._counts[item]
            if present == count:
                heapq.heappop(self._smallest)
                del self._counts[item]
                return count
            heapq.heapreplace(self._smallest, (present, item))


class Salter:
    """The hot keys of one producer, and the numbers of their records."""

    def __init__(self, keys: SaltedKeys, rng: Random) -> None:
        self._keys = keys
        self._rng = rng
        self._source = rng.getrandbits(_SOURCE_BITS)
        self._hot = dict(keys.hot)
        self._found = 0
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._sketch = SpaceSaving(keys.counters) if keys.detect is not None else None

    @property
    def hot_keys(self) -> dict[bytes, int]:
        """Return the hot keys and the number of shards of each."""
        return dict(self._hot)

    def place(self, topic: str, key: bytes, partition_count: int) -> tuple[int, Salt] | None:
        """Return partition and salt of the next record of this key; None if it is not hot."""
        shards = self._hot.get(key)
        if shards is None:
            if self._sketch is None or not self._is_found(key, self._sketch):
                return None
            shards = self._keys.shards
        shards = min(shards, partition_count)
        number = self._numbers.get((topic, key), 0)
        self._numbers[topic, key] = number + 1
        shard = number % shards
        partition = (partition_of_key(key, partition_count) + shard * partition_count // shards) % partition_count
        return partition, Salt(self._source, number, shard, shards)

    def restart(self) -> None:
        """Continue as a new source, from number 0, because a numbered record will never be read."""
        self._source = self._rng.getrandbits(_SOURCE_BITS)
        self._numbers.clear()

    def _is_found(self, key: bytes, sketch: SpaceSaving) -> bool:
        if sketch.total >= self._keys.window:
            sketch.halve()
        occurred = sketch.add(key)
        assert self._keys.detect is not None
        # At least half a window must have been seen: the first records of a stream say nothing about shares.
        if sketch.total * 2 < self._keys.window or occurred < self._keys.detect * sketch.total:
            return False
        if self._found >= limits.HOT_KEYS_FOUND_MAX:
            return False
        self._found += 1
        self._hot[key] = self._keys.shards
        return True
