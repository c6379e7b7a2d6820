"""Fetch, its sessions, ListOffsets and OffsetForLeaderEpoch: the same answers from Ottla as from a real Kafka."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side

from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from ottla.wire.messages.records.produce import ProduceRequest

FIRST_FETCH_BY_ID = 13
UNKNOWN_ID = bytes(range(16))
FIRST_MS = 1_700_000_000_000
Wanted = Mapping[tuple[str, int], int]


def fill(side: Side, topic: str, partition: int, *, batches: int = 1, records: int = 1) -> None:
    """Records a second apart, whatever the batches."""
    data = ProduceRequest.TopicProduceData
    for number in range(batches):
        first = number * records
        batch = build_batch(
            [Record(at, FIRST_MS + 1000 * (first + at), b"k", b"v" * 100, ()) for at in range(records)],
        )
        parts = [data.PartitionProduceData(index=partition, records=bytes(batch))]
        answer: Any = side.answer(
            ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data(name=topic, partition_data=parts)]), 9
        )
        assert answer.responses[0].partition_responses[0].error_code == 0, answer


def fetch_request(side: Side, version: int, wanted: Wanted, **options: Any) -> FetchRequest:
    """Neighbours of one topic stand together; `epoch` and `last_epoch` go to every partition."""
    epochs = {
        "current_leader_epoch": options.pop("epoch", -1),
        "last_fetched_epoch": options.pop("last_epoch", -1),
        "partition_max_bytes": options.pop("partition_max_bytes", 1 << 20),
    }
    topics: list[FetchRequest.Topic] = []
    for (topic, partition), offset in wanted.items():
        if not topics or topics[-1].topic != topic:
            topics.append(FetchRequest.Topic(topic=topic, topic_id=side.ids.get(topic, UNKNOWN_ID), partitions=[]))
        topics[-1].partitions.append(FetchRequest.Topic.Partition(partition=partition, fetch_offset=offset, **epochs))
    forget = [
        FetchRequest.ForgottenTopic(topic=topic, topic_id=side.ids.get(topic, UNKNOWN_ID), partitions=[partition])
        for topic, partition in options.pop("forget", ())
    ]
    defaults: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 26, "session_epoch": -1}
    return FetchRequest(topics=topics, forgotten_topics_data=forget, **(defaults | options))


def fetch(side: Side, version: int, wanted: Wanted, **options: Any) -> Plain:
    return side.call(fetch_request(side, version, wanted, **options), version)


@pytest.mark.parametrize("version", versions_of(FetchRequest))
def test_every_version_of_fetch(both: Both, new_name: Names, version: int) -> None:
    name, other, never = new_name("fetch"), new_name("fetch"), new_name("never")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 2)
        side.create(other)
        fill(side, name, 0, batches=3, records=2)
        fill(side, other, 0)
        for isolation in (0, 1):
            yield fetch(side, version, {(name, 0): 0, (name, 1): 0, (other, 0): 0}, isolation_level=isolation)
            yield fetch(side, version, {(name, 0): 99, (other, 0): 1}, isolation_level=isolation)
        yield fetch(side, version, {(name, 0): 3})  # within a batch
        yield fetch(side, version, {(name, 0): -1})
        yield fetch(side, version, {(name, 7): 0, (never, 0): 0, (name, 0): 0})
        yield fetch(side, version, {(never, 0): 0}, max_wait_ms=60_000)
        for max_bytes in (0, 1, 200, 500):
            yield fetch(side, version, {(name, 0): 0, (other, 0): 0}, max_bytes=max_bytes)
            yield fetch(side, version, {(name, 0): 0, (other, 0): 0}, partition_max_bytes=max_bytes)
        yield fetch(side, version, {(name, 0): 0}, min_bytes=1 << 30, max_bytes=300, max_wait_ms=60_000)
        yield fetch(side, version, {(name, 0): 0}, partition_max_bytes=-1)
        yield fetch(side, version, {})
        for epoch in (0, 1):
            yield fetch(side, version, {(name, 0): 0}, epoch=epoch)
            yield fetch(side, version, {(name, 0): 0}, last_epoch=epoch)

    both.same(script)


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_sessions(both: Both, new_name: Names, version: int) -> None:
    one, two, never = new_name("session"), new_name("session"), new_name("never")
    of_the_other_kind = 12 if version >= FIRST_FETCH_BY_ID else 13

    def script(side: Side) -> Iterator[Plain]:
        for name in (one, two):
            side.create(name, 2)
            for partition in range(2):
                fill(side, name, partition)
        session = 0

        def step(epoch: int, wanted: Wanted, *, by: int = version, **options: Any) -> Plain:
            """The answer, its partitions in order."""
            nonlocal session
            request = fetch_request(side, by, wanted, session_id=session, session_epoch=epoch, **options)
            answer: Any = side.answer(request, by)
            session = session or answer.session_id
            names = {topic_id: name for name, topic_id in side.ids.items()}
            return (
                answer.error_code,
                answer.session_id in (session, 0),
                bool(answer.session_id),
                [
                    (topic.topic or names.get(topic.topic_id), part.partition_index, part.error_code, len(part.records))
                    for topic in answer.responses
                    for part in topic.partitions
                ],
            )

        yield step(0, {(one, 0): 0, (two, 0): 0, (one, 1): 1, (never, 0): 0, (two, 1): 0})
        yield step(1, {})
        yield step(2, {(one, 0): 1, (two, 0): 1, (two, 1): 1})
        yield step(2, {})  # again: a wrong epoch
        yield step(-7, {})
        yield step(3, {}, by=of_the_other_kind)
        yield step(9, {}, by=of_the_other_kind)
        for name, partition in ((one, 0), (two, 1)):
            fill(side, name, partition)
        yield step(3, {})
        fill(side, one, 1)
        yield step(4, {})
        yield step(5, {(one, 1): 2}, forget=[(one, 0), (never, 0)])
        yield step(6, {(one, 0): 0}, max_bytes=1)
        yield step(7, {}, max_bytes=1)
        yield step(8, {}, max_bytes=1)
        yield step(9, {}, forget=[(one, 0), (one, 1), (two, 0), (two, 1)])
        yield step(10, {})
        session = 0
        yield step(0, {})
        yield step(1, {(one, 0): 0})
        yield step(-1, {(one, 0): 0})
        yield step(2, {})
        session = 0
        yield step(-1, {(one, 0): 0})
        yield step(5, {})

    both.same(script)


@pytest.mark.parametrize("version", versions_of(ListOffsetsRequest))
def test_list_offsets(both: Both, new_name: Names, version: int) -> None:
    name, never = new_name("list"), new_name("never")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 2)
        fill(side, name, 0, batches=3, records=4)
        topic = ListOffsetsRequest.Topic

        def ask(*asks: tuple[str, int, int], epoch: int = -1, isolation: int = 0) -> Plain:
            topics = [
                topic(
                    name=each,
                    partitions=[topic.Partition(partition_index=partition, timestamp=when, current_leader_epoch=epoch)],
                )
                for each, partition, when in asks
            ]
            return side.call(
                ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=5_000), version
            )

        for partition in (0, 1):
            for when in (-1, -2, -3, -4, -5, -6, -7):
                yield ask((name, partition, when))
        for when in (0, FIRST_MS, FIRST_MS + 1, FIRST_MS + 5_500, FIRST_MS + 11_000, FIRST_MS + 11_001):
            yield ask((name, 0, when), isolation=1)
        yield ask((name, 9, -1), (never, 0, -1))
        yield ask((name, 0, -1), epoch=0)
        yield ask((name, 0, -1), epoch=4)
        yield ask((name, 0, -1), (name, 0, -2))

    both.same(script)


@pytest.mark.parametrize("version", versions_of(OffsetForLeaderEpochRequest))
def test_offset_for_leader_epoch(both: Both, new_name: Names, version: int) -> None:
    name, never = new_name("epochs"), new_name("never")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 2)
        fill(side, name, 0, batches=3)
        topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        for each, partition in ((name, 0), (name, 1), (name, 9), (never, 0)):
            for epoch in (-1, 0, 1, 7):
                for current in (-1, 0, 3):
                    part = topic.OffsetForLeaderPartition(
                        partition=partition, leader_epoch=epoch, current_leader_epoch=current
                    )
                    topics = [topic(topic=each, partitions=[part])]
                    yield side.call(OffsetForLeaderEpochRequest(replica_id=-2, topics=topics), version)

    both.same(script)
