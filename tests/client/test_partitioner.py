"""Where records go: Java's hash to the bit, and sticking without keys."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from ottla.client.partitioner import StickyPartitions, murmur2, partition_of_key


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From Kafka's own Java class, which prints signed numbers.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_murmur2_is_javas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFF_FFFF
    assert partition_of_key(key, 7) == (hashed & 0x7FFF_FFFF) % 7


def test_sticks_until_a_batch_is_full_then_moves() -> None:
    sticky = StickyPartitions(random.Random(7), switch_bytes=1000)
    chosen = [sticky.choose("t", [0, 1, 2], 100) for _ in range(100)]
    runs = [chosen[position : position + 10] for position in range(0, 100, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(before[0] != after[0] for before, after in pairwise(runs))
    assert set(Counter(chosen)) == {0, 1, 2}


def test_leaves_a_partition_that_lost_its_leader() -> None:
    sticky = StickyPartitions(random.Random(7), switch_bytes=1000)
    first = sticky.choose("t", [0, 1], 10)
    other = 1 - first
    assert sticky.choose("t", [other], 10) == other
    assert sticky.choose("u", [3], 10) == 3
