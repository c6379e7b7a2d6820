"""Open transactions move with a data directory from a real Kafka to Ottla and back; each ends what the other began."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional

from ottla.records.batch import headers
from ottla.records.record import records
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

IDS = ("committed", "aborted", "fenced")


@pytest.fixture
def kafka(java_tools: None, tmp_path: Path) -> Iterator[RealKafka]:
    found = RealKafka(tmp_path / "kafka")
    try:
        yield found
    finally:
        found.kill()


class Producers:
    """Three transactional ids that go from broker to broker."""

    def __init__(self) -> None:
        self.known: dict[str, Transactional] = {}
        self.topic_ids: dict[str, bytes] = {}

    def on(self, bootstrap: str) -> Side:
        side = Side("node", bootstrap)
        side.ids = self.topic_ids
        for id in IDS:
            one = self.known.setdefault(id, Transactional(side, id))
            one.side = side
            one.find()
        return side

    def write(self, word: str) -> None:
        for id, one in self.known.items():
            answer = one.produce("t", value=f"{id} {word}".encode())
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer

    def end(self) -> None:
        assert self.known["committed"].ended(True)["error_code"] == 0
        assert self.known["aborted"].ended(False)["error_code"] == 0
        self.known["fenced"].begin()


def read(side: Side) -> list[bytes | None]:
    """As a reader of what is committed."""
    asked = FetchRequest.Topic
    wanted = asked.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, isolation_level=1, topics=[asked(topic="t", partitions=[wanted])]
    )
    answer = side.answer(request, 12)
    assert isinstance(answer, FetchResponse)
    (found,) = answer.responses[0].partitions
    aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
    view = memoryview(bytes(found.records or b""))
    values: list[bytes | None] = []
    dropping: set[int] = set()
    for at, header in headers(view):
        while aborted and aborted[0][0] <= header.base_offset:
            dropping.add(aborted.pop(0)[1])
        if header.is_control:
            dropping.discard(header.producer_id)
        elif header.producer_id not in dropping:
            values.extend(record.value for record in records(view, at))
    return values


@pytest.mark.slow
@pytest.mark.tool("data directory of Kafka 4.3.1")
@pytest.mark.feature("transactions taken over, given back")
def test_there_and_back(kafka: RealKafka) -> None:
    producers = Producers()
    kafka.start()
    side = producers.on(kafka.bootstrap)
    side.create("t")
    for one in producers.known.values():
        one.begin()
    producers.write("by Kafka")
    side.close()
    kafka.kill()  # nobody says goodbye

    node = OttlaNode.in_place_of(kafka).start()
    try:
        side = producers.on(node.bootstrap)
        assert [one.describe()["transaction_state"] for one in producers.known.values()] == ["Ongoing"] * 3
        producers.write("by Ottla")
        producers.end()
        committed: list[bytes | None] = [b"committed by Kafka", b"committed by Ottla"]
        assert read(side) == committed
        producers.write("by Ottla again")
        assert read(side) == committed
        side.close()
    finally:
        node.kill()

    kafka.start()
    side = producers.on(kafka.bootstrap)
    assert [one.describe()["transaction_state"] for one in producers.known.values()] == ["Ongoing"] * 3
    producers.write("by Kafka again")
    producers.end()
    assert read(side) == [*committed, b"committed by Ottla again", b"committed by Kafka again"]
    side.close()
