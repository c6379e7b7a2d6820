"""Transactions over very many partitions: nobody else waits for those who begin, end or load them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.talk import create, eventually
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.support.requests.raw import RawConnection

from ottla.model.errors import ErrorCode
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest

WIDE = 10_000  # joined by one transaction
ENDED = 500  # of those that get markers: each of them is opened

WritableMarker = WriteTxnMarkersRequest.WritableTxnMarker


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    settings = {"transaction.state.log.num.partitions": 1}
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as started, started.connect() as connection:
        create(connection, "wide", WIDE)
        yield started


class Producer:
    """A transactional producer that writes nothing."""

    def __init__(self, connection: RawConnection, id: str) -> None:
        self._connection = connection
        self._id = id
        eventually(self._is_known, "a producer id")

    def _is_known(self) -> bool:
        self._connection.call(FindCoordinatorRequest(key_type=1, coordinator_keys=[self._id]), 4)
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=60_000)
        answer: Any = self._connection.call(request, 4)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return bool(answer.error_code == ErrorCode.NONE)

    def add(self, topic: str, partitions: range) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[Topic(name=topic, partitions=list(partitions))],
        )
        answer: Any = self._connection.call(request, 3)
        (told,) = answer.results_by_topic_v3_and_below
        assert {each.partition_error_code for each in told.results_by_partition} == {ErrorCode.NONE}
        assert [each.partition_index for each in told.results_by_partition] == list(partitions)

    def end(self, *, commit: bool) -> None:
        """Once the markers are written."""
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=self.id, producer_epoch=self.epoch, committed=commit
        )
        answer: Any = self._connection.call(request, 4)
        assert answer.error_code == ErrorCode.NONE
        eventually(lambda: self._state().startswith("Complete"), "the markers")

    def _state(self) -> str:
        answer: Any = self._connection.call(DescribeTransactionsRequest(transactional_ids=[self._id]), 0)
        return str(answer.transaction_states[0].transaction_state)


def ends(node: MeasuredNode, partitions: range) -> set[int]:
    return {node.node.partitions.find("wide", index).log.next_offset for index in partitions}


def test_very_many_partitions_join(node: MeasuredNode) -> None:
    numbers = iter(range(3))

    def attempt() -> Callback:
        with node.connect() as connection:
            producer = Producer(connection, f"joins-{next(numbers)}")
            return node.cost(lambda: producer.add("wide", range(WIDE)))

    assert best_of(attempt).cpu_ms <= BUDGET_MS


def test_the_end_of_a_transaction_of_very_many_partitions(node: MeasuredNode) -> None:
    """Partitions that were never written to get their marker, too."""
    firsts = iter(range(0, 3 * ENDED, ENDED))

    def attempt() -> Callback:
        first = next(firsts)
        ended = range(first, first + ENDED)
        with node.connect() as connection:
            producer = Producer(connection, f"ends-{first}")
            producer.add("wide", ended)
            cost = node.cost(lambda: producer.end(commit=False))
        assert node.call(lambda: ends(node, ended)) == {1}
        return cost

    assert best_of(attempt).cpu_ms <= BUDGET_MS


def test_markers_of_another_coordinator(node: MeasuredNode) -> None:
    firsts = iter(range(WIDE - 3 * ENDED, WIDE, ENDED))

    def attempt() -> Callback:
        marked = range(next(firsts), WIDE)[:ENDED]
        topic = WritableMarker.WritableTxnMarkerTopic(name="wide", partition_indexes=list(marked))
        marker = WritableMarker(
            producer_id=99, producer_epoch=0, transaction_result=True, topics=[topic], coordinator_epoch=0
        )
        codes: set[int] = set()

        def write() -> None:
            answer: Any = connection.call(WriteTxnMarkersRequest(markers=[marker]), 1)
            codes.update(each.error_code for topic in answer.markers[0].topics for each in topic.partitions)

        with node.connect() as connection:
            cost = node.cost(write)
        assert codes == {0}
        assert node.call(lambda: ends(node, marked)) == {1}
        return cost

    assert best_of(attempt).cpu_ms <= BUDGET_MS
