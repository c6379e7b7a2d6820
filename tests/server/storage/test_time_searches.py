"""Searches by time that a worker makes for clients: they end when their client leaves, and others have their turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from tests.server.storage.test_batch_looks import Gate
from tests.server.talk import Pipeline, create, produce
from tests.support.requests.raw import RawConnection

from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

VERSION = 7
PARTITIONS, RECORDS = 20, 20_000  # a search in one partition takes more than 20 steps


class Counting(Gate):
    """Counts what it does when it is opened."""

    steps = 0

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        def counted() -> Any:
            self.steps += not work.__self__.done  # type: ignore[attr-defined]  # Steps.step
            return work(*args, **more)

        return super().submit(counted)


@pytest.fixture
def worker(ottla_broker: EmbeddedBroker) -> Iterator[Counting]:
    assert ottla_broker.node is not None
    made = ottla_broker.node.storage.looks._executor = Counting()
    yield made
    made.open.set()
    made.shutdown()


def by_time(topic: str, timestamp: int, *partitions: int) -> ListOffsetsRequest:
    asks = [ListOffsetsRequest.Topic.Partition(partition_index=index, timestamp=timestamp) for index in partitions]
    return ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[ListOffsetsRequest.Topic(name=topic, partitions=asks)]
    )


@pytest.mark.parametrize("leaves", [True, False])
def test_nobody_waits_for_the_searches_of_another(ottla_broker: EmbeddedBroker, worker: Counting, leaves: bool) -> None:
    batch = build_batch([Record(-1, 1 + at, None, b"") for at in range(RECORDS)], codec=Codec.ZSTD)
    with RawConnection(ottla_broker.bootstrap) as other, Pipeline(ottla_broker.bootstrap) as one:
        create(other, "many", PARTITIONS)
        create(other, "one", 1)
        for index in range(PARTITIONS):
            assert produce(other, "many", bytearray(batch), index=index)[0] == 0
        assert produce(other, "one", bytearray(batch))[0] == 0
        one.send(by_time("many", RECORDS, *range(PARTITIONS)), VERSION)
        assert worker.asked.wait(60)
        if leaves:
            one.connection.close()
        worker.open.set()
        answer: Any = other.call(by_time("one", RECORDS, 0), VERSION)
        assert answer.topics[0].partitions[0].offset == RECORDS - 1
        # Of the first client, who is still there, one search was made before; else one step of it.
        steps = RECORDS // 1_000 + 5
        assert worker.steps <= (steps + 2 if leaves else 2 * steps)
        if not leaves:
            whole: Any = one.answer()
            assert [each.offset for each in whole.topics[0].partitions] == [RECORDS - 1] * PARTITIONS
