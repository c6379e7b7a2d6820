"""Ranges of tasks and ends of micro-batches: every offset in exactly one task, limits kept, nothing starved."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.spark.read.plan import TaskRange, count_new, divide, limited, split

PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("b", 7)]
RANGES = st.lists(st.tuples(st.integers(0, 1000), st.integers(-5, 5000)), min_size=0, max_size=len(PARTITIONS)).map(
    lambda sizes: [
        TaskRange(partition, start, start + size, from_earliest=True)
        for partition, (start, size) in zip(PARTITIONS, sizes, strict=False)
    ]
)
MAYBE = st.none() | st.integers(1, 50)


def covered(ranges: list[TaskRange]) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Ranges by partition, neighbours put together."""
    found: dict[TopicPartition, list[tuple[int, int]]] = {}
    for each in ranges:
        spans = found.setdefault(each.partition, [])
        if spans and spans[-1][1] == each.start:
            spans[-1] = (spans[-1][0], each.end)
        else:
            spans.append((each.start, each.end))
    return found


@given(RANGES, MAYBE, st.none() | st.integers(1, 2000), st.none() | st.integers(1, 100_000))
def test_every_offset_is_in_one_task(
    ranges: list[TaskRange], min_partitions: int | None, max_records: int | None, max_bytes: int | None
) -> None:
    sizes = dict.fromkeys(PARTITIONS, 37.5)
    found = split(
        ranges, min_partitions=min_partitions, max_records=max_records, max_bytes=max_bytes, bytes_per_offset=sizes
    )
    assert covered(found) == {each.partition: [(each.start, each.end)] for each in ranges if each.size > 0}
    assert all(each.size > 0 for each in found)
    if max_records is not None:
        assert all(each.size <= max_records for each in found)
    if max_bytes is not None:
        assert all(each.size == 1 or each.size * 37.5 <= max_bytes + 37.5 for each in found)
    for each in found:  # only the first range of a partition begins at "the earliest"
        assert each.from_earliest == any(
            whole.start == each.start and whole.partition == each.partition for whole in ranges
        )


def test_tasks_are_as_many_as_the_connector_makes() -> None:
    one, two = TaskRange(PARTITIONS[0], 0, 10), TaskRange(PARTITIONS[1], 0, 1000)
    assert len(split([one, two])) == 2
    assert len(split([one, two], min_partitions=2)) == 2
    # Small ranges stay whole and do not count; the rest of the wanted tasks is the large one's.
    assert [each.size for each in split([one, two], min_partitions=5)] == [10, 250, 250, 250, 250]
    assert [each.size for each in split([two], max_records=400)] == [333, 333, 334]
    assert len(split([two], max_records=400, min_partitions=10)) == 9  # thirds in threes, rounded as Spark rounds
    assert divide(TaskRange(PARTITIONS[0], 0, 2), 5) == [TaskRange(PARTITIONS[0], 0, 1), TaskRange(PARTITIONS[0], 1, 2)]


@given(st.dictionaries(st.sampled_from(PARTITIONS), st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))))
def test_no_limit_is_exceeded_by_more_than_the_small_ones(offsets: dict[TopicPartition, tuple[int, int]]) -> None:
    start = {partition: begin for partition, (begin, _) in offsets.items()}
    latest = {partition: begin + size for partition, (begin, size) in offsets.items()}
    for limit in (1, 7, 1000):
        ends = limited(start, latest, limit)
        taken = {partition: ends[partition] - start[partition] for partition in offsets}
        assert ends.keys() == latest.keys()
        assert all(0 <= taken[partition] <= size for partition, (_, size) in offsets.items())
        assert sum(taken.values()) <= limit + len(offsets)
        # Whatever is there moves on, so a query always ends.
        assert all(taken[partition] > 0 for partition, (_, size) in offsets.items() if size > 0)
    assert count_new(start, latest) == sum(size for _, size in offsets.values())


def test_filters_narrow_what_is_read() -> None:
    source = pytest.importorskip("pyspark.sql.datasource")
    from ottla.spark.read.filters import ReadBounds, narrow

    filters = [
        source.IsNotNull(("offset",)),
        source.GreaterThanOrEqual(("offset",), 10),
        source.LessThanOrEqual(("offset",), 19),
        source.In(("partition",), (0, 1)),
        source.EqualTo(("partition",), 1),
        source.EqualTo(("topic",), "a"),
        source.GreaterThan(("timestamp",), datetime(2023, 11, 14, 22, 13, 20, 999, tzinfo=UTC)),
        source.EqualTo(("value",), b"x"),
        source.LessThan(("timestamp",), datetime(2030, 1, 1, tzinfo=UTC)),
        source.Not(source.EqualTo(("partition",), 1)),
        source.IsNotNull(("value",)),
    ]
    found = list(narrow(ReadBounds(), filters))
    bounds = found[-1][0]
    assert bounds.clip(0, 100) == (10, 20) and bounds.clip(15, 17) == (15, 17)
    assert [bounds.holds(each) for each in PARTITIONS] == [False, True, False, False]
    assert bounds.since_ms == 1_700_000_000_000
    # Times are not in order, and what is not understood stays Spark's.
    assert [left for _, left in found if left is not None] == filters[6:]
    assert next(narrow(ReadBounds(end=5), [source.EqualTo(("offset",), 9)]))[0].clip(0, 100) == (9, 5)
