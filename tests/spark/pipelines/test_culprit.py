"""Which record a query failed on: the search, without Spark."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from ottla.spark.pipelines.culprit import search
from ottla.spark.pipelines.failure_text import FailedSpan

STARTS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 200)), min_size=1, max_size=6)


@given(STARTS, st.data())
def test_the_first_bad_record_of_one_partition_is_found_with_few_trials(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    spans = [FailedSpan("t", at, start, start + count) for at, (start, count) in enumerate(sizes)]
    bad = data.draw(
        st.sets(st.sampled_from([(each.partition, at) for each in spans for at in offsets(each)]), min_size=1)
    )
    trials = 0

    def fails(some: Sequence[FailedSpan]) -> bool:
        nonlocal trials
        trials += 1
        return any((each.partition, at) in bad for each in some for at in offsets(each))

    (found,) = search(spans, fails, lambda: True)
    assert found.is_one
    assert found.start == min(at for partition, at in bad if partition == found.partition)
    assert trials <= 3 + 8  # halves of six partitions, halves of 200 records


def offsets(span: FailedSpan) -> range:
    assert span.start is not None
    return range(span.start, span.end)


def test_what_is_left_when_the_time_is_over() -> None:
    spans = [FailedSpan("t", 0, 0, 1000), FailedSpan("t", 1, 0, 1000)]
    times = iter([True, True, True, False])

    def fails(some: Sequence[FailedSpan]) -> bool:
        return any(each.partition == 1 and each.end > 600 for each in some)

    assert search(spans, fails, lambda: next(times)) == [FailedSpan("t", 1, 500, 750)]
    assert search(spans, fails, lambda: False) == spans
