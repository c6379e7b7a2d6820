"""The picture of a topic's storage: segments, what retention takes, replicas."""

from __future__ import annotations

import asyncio

import pytest
from tests.console.consoles import Visitor

from ottla.client.admin import Admin
from ottla.client.admin.segments import LogSegment, PartitionSegments
from ottla.client.producer.producer import Producer
from ottla.console.pages.topics.drawing import Retention, segment_picture
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.testing.broker import EmbeddedBroker

NOW_MS = 1_000_000


def segments(*sizes: int, age_ms: int = 1_000) -> PartitionSegments:
    """Segments of these sizes; each is so much older than the one behind it."""
    count = len(sizes)
    made = [
        LogSegment(number * 10, size, 8, 12, 0, NOW_MS - age_ms * (count - 1 - number), number == count - 1)
        for number, size in enumerate(sizes)
    ]
    return PartitionSegments(0, count * 10, count * 10, count, tuple(made))


@pytest.mark.parametrize(
    ("retention", "due"),
    [
        (Retention(None, None, True, NOW_MS), set()),
        (Retention(1_500, None, True, NOW_MS), {0, 10}),
        (Retention(1_500, None, False, NOW_MS), set()),
        (Retention(0, None, True, NOW_MS), {0, 10, 20}),  # the active one stays
        (Retention(None, 250, True, NOW_MS), {0}),
        (Retention(None, 301, True, NOW_MS), set()),
        (Retention(None, 0, True, NOW_MS), {0, 10, 20}),
    ],
)
def test_what_retention_takes_next(retention: Retention, due: set[int]) -> None:
    assert retention.due(segments(100, 100, 100, 100)) == due


@pytest.mark.parametrize(
    ("retention", "said"),
    [
        (Retention(604_800_000, None, True, 0), "older than 7 d"),
        (Retention(None, 1_048_576, True, 0), "more than 1.0 MiB"),
        (Retention(None, None, True, 0), "kept for ever"),
        (Retention(1, 1, False, 0), "compacted"),
    ],
)
def test_retention_in_words(retention: Retention, said: str) -> None:
    assert said in retention.sentence


def test_the_picture_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = segment_picture(0, segments(*[100] * 300), Retention(None, None, True, NOW_MS))
    assert drawn.count("<g>") == 80
    assert "the newest 80 are drawn" in drawn


def test_segments_are_drawn(broker: EmbeddedBroker, visitor: Visitor) -> None:
    async def work() -> PartitionSegments:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.create("stored", 2, configs={"segment.bytes": "2000000", "retention.ms": "-1"})
            async with Producer(admin.cluster) as producer:
                for _ in range(9):
                    await producer.send("stored", b"x" * 500_000, partition=0)
            return await admin.topics.segments(TopicPartition("stored", 0))

    found = asyncio.run(work())
    assert (found.segment_count, found.end_offset, found.segments[-1].is_active) == (3, 9, True)
    assert [each.base_offset for each in found.segments] == [0, 3, 6]
    shown = visitor.get("/topics/stored/storage")
    assert shown.text.count("<g>") == 4  # and one of the empty partition
    assert "kept for ever" in shown.words
    assert "4.3 MiB on disk" in shown.words
    one = visitor.get("/topics/stored/storage?partition=0").words
    assert "6 active 1.4 MiB" in one
    assert "0 closed 1.4 MiB" in one
    for wrong in ("x", "7"):
        assert visitor.get(f"/topics/stored/storage?partition={wrong}").status == 400


def test_brokers_that_do_not_answer_in_time(
    broker: EmbeddedBroker, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create() -> None:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.create("late")

    asyncio.run(create())
    monkeypatch.setattr(limits, "CONSOLE_FIGURES_S", 0)
    shown = visitor.get("/topics/late/storage")
    assert shown.status == 200 and "TimeoutError" not in shown.words
    assert "Sizes are not told: no answer came in time" in shown.words
    assert shown.words.count("no answer came in time") == 2, "of sizes, and of segments"
