"""What follows from the measurements of a topic."""

import pytest

from ottla.client.explain.hot import PARTITION_BYTES_PER_S, HotKey, HotPartition, TopicHeat, advise
from ottla.client.producer.hot_keys import SpaceSaving

MB = 1_000_000


def heat(
    *rates: float, keys: tuple[HotKey, ...] = (), sampled: int = 1_000, bare: int = 0, size: int = 100
) -> TopicHeat:
    """A topic whose partitions have 1000 records of `size` bytes and these rates."""
    parts = tuple(HotPartition(index, 1_000, 1_000 * size, rate) for index, rate in enumerate(rates))
    return TopicHeat("orders", 5.0, parts, sampled, bare, keys)


def test_hot_key_limits_the_useful_partitions() -> None:
    first, second, skew, count = advise(heat(900.0, 50.0, 50.0, keys=(HotKey(b"a", 400, 0.4),)))
    assert "one key has 40% of the last records" in first and "more than 2 partitions" in first
    assert "SaltedKeys" in second
    assert skew == "partition 0 has 2.7 times the average of records per second"
    assert "1 would be enough" in count


def test_skew_without_a_hot_key() -> None:
    cold = (HotKey(b"a", 20, 0.02),)
    assert "no single key explains it" in advise(heat(900.0, 50.0, 50.0, keys=cold))[1]
    assert "the records have no keys" in advise(heat(900.0, 50.0, 50.0, bare=1_000))[1]


def test_even_topic_gets_only_the_arithmetic() -> None:
    (count,) = advise(heat(10.0, 10.0, 10.0, keys=(HotKey(b"a", 20, 0.02),)))
    assert count.startswith("0.00 MB/s are written to 3 partitions")


def test_more_partitions_where_they_are_needed() -> None:
    (count,) = advise(heat(300.0, 300.0, size=100_000))
    assert PARTITION_BYTES_PER_S == 10 * MB
    assert count.endswith("6 are needed: ottla topic add-partitions orders 6")
    told = advise(heat(300.0, 300.0, size=100_000, keys=(HotKey(b"a", 500, 0.5),)))
    assert told[-1].endswith("6 are needed, but the hot key has to be spread first")


def test_a_small_sample_says_nothing_about_keys() -> None:
    assert not any("key" in each for each in advise(heat(10.0, 10.0, keys=(HotKey(b"a", 9, 0.9),), sampled=10)))


def test_few_records_say_nothing_about_skew() -> None:
    parts = (HotPartition(0, 3, 300, 0.0), HotPartition(1, 0, 0, 0.0))
    assert len(advise(TopicHeat("orders", 5.0, parts, 3, 3, ()))) == 1


def test_nothing_written() -> None:
    (told,) = advise(heat(0.0, 0.0, keys=(HotKey(b"a", 20, 0.02),)))
    assert told.startswith("nothing was written")


@pytest.mark.parametrize("counters", [3, 100])
def test_most_frequent_items_in_bounded_memory(counters: int) -> None:
    sketch = SpaceSaving(counters)
    for number in range(300):
        sketch.add(b"a")
        sketch.add(b"b" if number % 2 else b"n%d" % number)
    (first, count), *_ = sketch.top(2)
    assert first == b"a" and 200 <= count <= 300
    assert len(sketch.top(1_000)) <= counters
