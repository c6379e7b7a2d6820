"""What is said of partitions that are not well."""

from __future__ import annotations

import pytest

from ottla.client.metadata import NO_LEADER, PartitionInfo, TopicInfo
from ottla.console.pages.topics.frame import ailment_of, is_internal, state_of
from ottla.model.ids import TopicPartition

WELL = PartitionInfo(0, 1, 0, (1, 2, 3), (1, 2, 3))
BEHIND = PartitionInfo(1, 1, 0, (1, 2, 3), (1,))
OFFLINE = PartitionInfo(2, NO_LEADER, 0, (1, 2, 3), (3,), (3,))


@pytest.mark.parametrize(
    ("partitions", "said", "mood", "ailment"),
    [
        ((WELL,), "well", "good", (0, 0)),
        ((WELL, BEHIND), "1 under-replicated", "fair", (0, 1)),
        ((WELL, BEHIND, OFFLINE), "1 offline", "bad", (1, 2)),
    ],
)
def test_the_state_of_a_topic(
    partitions: tuple[PartitionInfo, ...], said: str, mood: str, ailment: tuple[int, int]
) -> None:
    topic = TopicInfo("t", bytes(16), False, partitions)
    assert state_of(topic, {}) == f'<span class="badge {mood}">{said}</span>'
    assert ailment_of(topic, {}) == ailment


def test_replicas_that_are_being_added_are_not_behind() -> None:
    topic = TopicInfo("t", bytes(16), False, (WELL, BEHIND))
    assert ailment_of(topic, {TopicPartition("t", 1): (2, 3)}) == (0, 0)
    assert ailment_of(topic, {TopicPartition("t", 1): (3,)}) == (0, 1), "replica 2 is behind"


@pytest.mark.parametrize(
    ("name", "internal"), [("__consumer_offsets", True), ("_schemas", True), ("_mine", False), ("orders", False)]
)
def test_internal_topics(name: str, internal: bool) -> None:
    assert is_internal(name) is internal
