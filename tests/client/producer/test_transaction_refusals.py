"""Partitions and offsets that may not join a transaction: the caller hears at once which, and nothing is committed."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.partitions import ScriptedPartitions
from tests.client.producer.test_producer import with_producer
from tests.client.scripted import ScriptedBroker
from tests.support.waiting import WAIT_S

from ottla.client.producer.producer import Producer
from ottla.client.producer.transaction import _deciding
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.txns.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.txns.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    TopicResult,
)
from ottla.wire.messages.txns.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.txns.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

PASSES, REFUSED, UNTRIED = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)
Codes = dict[int, ErrorCode]


class Coordinating:
    """The broker coordinates everything; `codes` are what becomes of each partition."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.codes: Codes = {}
        self.ends: list[bool] = []
        found = FindCoordinatorResponse.Coordinator
        broker.answers |= {
            FindCoordinatorRequest: lambda request: FindCoordinatorResponse(
                coordinators=[
                    found(key=each, node_id=1, host="127.0.0.1", port=broker.port, error_code=0, error_message=None)
                    for each in request.coordinator_keys
                ]
            ),
            AddPartitionsToTxnRequest: self.add,
            AddOffsetsToTxnRequest: lambda request: AddOffsetsToTxnResponse(error_code=0),
            TxnOffsetCommitRequest: self.commit,
            EndTxnRequest: self.end,
        }

    def code(self, index: int) -> int:
        return int(self.codes.get(index, ErrorCode.NONE))

    def add(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        (topic,) = request.v3_and_below_topics
        results = [
            PartitionResult(partition_index=each, partition_error_code=self.code(each)) for each in topic.partitions
        ]
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[TopicResult(name="t", results_by_partition=results)]
        )

    def commit(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        kind = TxnOffsetCommitResponse.Topic
        (topic,) = request.topics
        partitions = [
            kind.Partition(partition_index=each.partition_index, error_code=self.code(each.partition_index))
            for each in topic.partitions
        ]
        return TxnOffsetCommitResponse(topics=[kind(name="t", partitions=partitions)])

    def end(self, request: EndTxnRequest) -> EndTxnResponse:
        self.ends.append(request.committed)
        return EndTxnResponse(error_code=0)


async def post(producer: Producer, txn: Any) -> None:
    for index in range(3):
        await producer.post("t", b"v", partition=index)


async def send_offsets(producer: Producer, txn: Any) -> None:
    await txn.send_offsets({TopicPartition("t", index): 1 for index in range(3)}, "g")


@pytest.mark.parametrize("do", [post, send_offsets])
def test_what_will_not_pass_is_told_at_once_and_by_name(do: Callable[[Producer, Any], Any]) -> None:
    """Beside an error that passes it used to be asked for again, for a minute, and then told without a name."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        there = Coordinating(broker)
        there.codes = {0: PASSES, 1: UNTRIED, 2: REFUSED}
        async with asyncio.timeout(WAIT_S / 4):
            with pytest.raises(ApiError, match=r"TOPIC_AUTHORIZATION_FAILED: .*'x': t-2 \(and 2 others\): "):
                async with producer.transaction() as txn:
                    await do(producer, txn)
            assert there.ends == [False] and not any(logs.values(index) for index in range(3))
            there.codes = {}
            async with producer.transaction() as txn:
                await do(producer, txn)
            assert there.ends == [False, True]

    with_producer(test, partitions=3, transactional_id="x")


def test_the_error_that_decides() -> None:
    parts = [TopicPartition("t", index) for index in range(3)]
    assert _deciding({}) == (None, ErrorCode.NONE)
    assert _deciding(dict(zip(parts, (UNTRIED, PASSES, REFUSED), strict=True))) == (parts[2], REFUSED)
    assert _deciding(dict(zip(parts, (UNTRIED, PASSES, UNTRIED), strict=True))) == (parts[1], PASSES)
    assert _deciding({parts[0]: UNTRIED}) == (parts[0], UNTRIED)
