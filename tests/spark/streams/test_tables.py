"""Tables that are read while they grow: every partition by one task, whatever the others see. No Spark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from ottla.model.ids import TopicPartition
from ottla.spark.streams.tables import task_of

_partitions = st.builds(TopicPartition, st.sampled_from(["users", "shops"]), st.integers(0, 50))


@given(st.lists(_partitions, min_size=1, unique=True), st.integers(1, 8), st.data())
def test_each_partition_is_read_once_though_every_task_sees_others(
    partitions: list[TopicPartition], tasks: int, data: st.DataObject
) -> None:
    """What all tasks see is read by exactly one; what is new, by one at most."""
    everywhere = data.draw(st.sets(st.sampled_from(partitions)))
    read: list[TopicPartition] = []
    for number in range(tasks):
        seen = everywhere | data.draw(st.sets(st.sampled_from(partitions)))
        read += [each for each in sorted(seen) if task_of(each, tasks) == number]
    assert len(read) == len(set(read))
    assert everywhere <= set(read)


def test_partitions_are_spread() -> None:
    assert {task_of(TopicPartition("users", index), 4) for index in range(4)} == {0, 1, 2, 3}
