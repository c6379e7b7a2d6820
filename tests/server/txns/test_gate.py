"""The gate for transactional batches, where the transaction coordinator is another node."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.settings.transactions import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
    TRANSACTION_PARTITION_VERIFICATION_ENABLE,
)
from ottla.server.loop.later import Later
from ottla.server.txns.add_partitions_requests import AddPartitionsRequests
from ottla.server.txns.gate import TransactionGate
from ottla.server.txns.verdict import Verdict
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnResponse, PartitionResult, TopicResult

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
VERIFIES, ADDS = 11, 12  # versions of Produce
PRODUCER = 9


class Node:
    """A node that leads `t`, and the coordinator's answers as the test wants them."""

    def __init__(self) -> None:
        self.partitions = [SimpleNamespace(leader_epoch=3), SimpleNamespace(leader_epoch=3)]
        state = SimpleNamespace(topics={"t": SimpleNamespace(partitions=self.partitions)})
        self.requests: list[Any] = []
        self.answers: list[Later[Any]] = []
        self.settings: dict[Any, Any] = {
            TRANSACTION_PARTITION_VERIFICATION_ENABLE: True,
            ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS: 0,
            ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS: 100,
        }
        runtime: Any = SimpleNamespace(loop=asyncio.get_running_loop(), steady_ms=lambda: 0)
        configs: Any = SimpleNamespace(broker=self.settings)
        metadata: Any = SimpleNamespace(state=state)
        coordinators: Any = SimpleNamespace(elsewhere=lambda _: 2)
        requests: Any = SimpleNamespace(ask=self._ask)
        self.gate = TransactionGate(runtime, configs, metadata, coordinators, AddPartitionsRequests(requests))

    def _ask(self, _: int, request: Any, __: str) -> Later[Any]:
        self.requests.append(request)
        self.answers.append(Later())
        return self.answers[-1]

    async def admit(self, name: str, *where: TopicPartition, version: int = VERIFIES) -> Later[Verdict]:
        asked = self.gate.admit_batches(name, [batch(each) for each in where], version)
        await asyncio.sleep(0)
        return asked


def batch(where: TopicPartition, producer_id: int = PRODUCER) -> Any:
    producers = SimpleNamespace(has_transaction=lambda *_: False, note_refusal=lambda _: None)
    partition = SimpleNamespace(
        topic=where.topic, index=where.partition, log=SimpleNamespace(producers=producers), require_leader=lambda: None
    )
    return SimpleNamespace(producer_id=producer_id, producer_epoch=0), partition


def refusals(verdict: Later[Verdict]) -> dict[TopicPartition, ErrorCode]:
    said = verdict.taken()
    found = {}
    for where in (A, B):
        header, partition = batch(where)
        try:
            said.check(partition, header)
        except ApiError as error:
            found[where] = error.code
    return found


def said(name: str, *codes: ErrorCode) -> AddPartitionsToTxnResponse:
    results = [PartitionResult(partition_index=index, partition_error_code=code) for index, code in enumerate(codes)]
    topics = [TopicResult(name="t", results_by_partition=results)]
    result = AddPartitionsToTxnResponse.Result(transactional_id=name, topic_results=topics)
    return AddPartitionsToTxnResponse(results_by_transaction=[result])


NONE = ErrorCode.NONE
RETRIABLE = ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_marker_concerns_the_questions_of_its_producer_only() -> None:
    async def talk() -> None:
        node = Node()
        mine = await node.admit("x", A, B)
        others = node.gate.admit_batches("y", [batch(A, producer_id=1)], VERIFIES)
        node.gate.marker_written(A, PRODUCER)
        node.answers[0].set(said("x", NONE, NONE))
        assert refusals(mine) == {A: ErrorCode.INVALID_TXN_STATE}
        node.answers[1].set(said("y", NONE))
        assert refusals(others) == {}
        later = await node.admit("x", A)
        node.gate.marker_written(B, PRODUCER)
        node.answers[2].set(said("x", NONE))
        assert refusals(later) == {}, "the marker before this question does not count, nor does another partition's"

    asyncio.run(talk())


def test_a_transaction_that_ends_while_it_is_asked_about_takes_no_more() -> None:
    async def talk() -> None:
        node = Node()
        asked = await node.admit("x", A, B)
        node.gate.marker_written(B, PRODUCER)
        node.answers[0].set(said("x", NONE, NONE))
        assert refusals(asked) == {B: ErrorCode.INVALID_TXN_STATE}
        asked = await node.admit("x", A, B)
        node.partitions[0].leader_epoch = 5  # led by another meanwhile, which may have seen the marker
        node.answers[1].set(said("x", NONE, ErrorCode.TRANSACTION_ABORTABLE))
        assert refusals(asked) == {A: RETRIABLE, B: ErrorCode.TRANSACTION_ABORTABLE}
        asked = await node.admit("x", A, B)
        node.answers[2].set(said("x", NONE, NONE))
        assert refusals(asked) == {}

    asyncio.run(talk())


def test_a_marker_of_the_transaction_before_ends_none_that_is_just_beginning() -> None:
    async def talk() -> None:
        node = Node()
        asked = await node.admit("x", A, B, version=ADDS)
        node.gate.marker_written(B, PRODUCER)
        node.answers[0].set(said("x", NONE, NONE))
        assert refusals(asked) == {B: RETRIABLE}
        asked = await node.admit("x", A, B, version=ADDS)
        node.gate.marker_written(B, PRODUCER)
        node.answers[1].set(said("x", NONE, ErrorCode.PRODUCER_FENCED))
        assert refusals(asked) == {B: ErrorCode.INVALID_PRODUCER_EPOCH}, "it was this one that ended"

    asyncio.run(talk())


def test_partitions_are_added_when_the_transaction_before_is_complete() -> None:
    async def talk() -> None:
        node = Node()
        asked = await node.admit("x", A, version=ADDS)
        node.answers[0].set(said("x", ErrorCode.CONCURRENT_TRANSACTIONS))
        await asyncio.sleep(0.02)
        assert not asked.done
        node.answers[1].set(said("x", NONE))
        assert refusals(asked) == {}

    asyncio.run(talk())


def test_transactions_are_asked_about_together_and_a_lost_answer_refuses_all() -> None:
    async def talk() -> None:
        node = Node()
        first = node.gate.admit_batches("x", [batch(A)], VERIFIES)
        second = node.gate.admit_offsets("y", PRODUCER, 0, B, version=4)
        await asyncio.sleep(0)
        assert [each.transactional_id for each in node.requests[0].transactions] == ["x", "y"]
        node.answers[0].set(ApiError(ErrorCode.NETWORK_EXCEPTION))
        assert refusals(first) == {A: RETRIABLE}
        assert second.taken() == ErrorCode.NETWORK_EXCEPTION

    asyncio.run(talk())


def test_a_partition_that_the_answer_leaves_out_is_not_admitted() -> None:
    async def talk() -> None:
        node = Node()
        asked = await node.admit("x", A, B)
        node.answers[0].set(said("x", NONE))
        assert refusals(asked) == {B: RETRIABLE}

    asyncio.run(talk())


def test_a_produce_has_one_producer() -> None:
    async def talk() -> None:
        asked = Node().gate.admit_batches("x", [batch(A), batch(B, producer_id=1)], VERIFIES)
        assert refusals(asked) == dict.fromkeys((A, B), ErrorCode.INVALID_PRODUCER_ID_MAPPING)

    asyncio.run(talk())
