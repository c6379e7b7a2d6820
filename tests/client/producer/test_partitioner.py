"""Where records go: Java's hash to the bit, and sticking without keys."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from ottla.client.metadata import NO_LEADER, PartitionInfo, TopicInfo
from ottla.client.producer.partitioner import RoundRobin, StickyPartitions, partition_of_key
from ottla.model.java import murmur2


def topic(*led: int, name: str = "t", headless: int | None = None) -> TopicInfo:
    leaders = dict.fromkeys(led, 1) | ({headless: NO_LEADER} if headless is not None else {})
    partitions = [PartitionInfo(index, leader, 0, (1,), (1,)) for index, leader in sorted(leaders.items())]
    return TopicInfo(name, bytes(16), False, tuple(partitions))


THREE = topic(0, 1, 2)


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
    chosen = [sticky.choose(THREE, 100) for _ in range(100)]
    runs = [chosen[position : position + 10] for position in range(0, 100, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(before[0] != after[0] for before, after in pairwise(runs))
    assert set(Counter(chosen)) == {0, 1, 2}


def test_leaves_a_partition_that_lost_its_leader() -> None:
    sticky = StickyPartitions(random.Random(7), switch_bytes=1000)
    first = sticky.choose(topic(0, 1), 10)
    other = 1 - first
    headless = topic(other, headless=first)
    assert sticky.choose(headless, 10) == other
    assert sticky.choose(headless, 10) == other
    assert sticky.choose(topic(3, name="u"), 10) == 3


def test_stays_when_the_metadata_is_merely_refreshed() -> None:
    sticky = StickyPartitions(random.Random(7), switch_bytes=1000)
    assert len({sticky.choose(topic(0, 1, 2), 100) for _ in range(10)}) == 1


def test_round_robin() -> None:
    choose = RoundRobin()
    assert [choose("t", b"same", None, 3) for _ in range(5)] == [0, 1, 2, 0, 1]
    assert choose("u", None, None, 3) == 0
    assert choose("t", None, None, 2) == 0, "the topic cannot shrink, but another one may take its name"
