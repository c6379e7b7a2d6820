"""A transactional producer made of bare requests: a test chooses every id, epoch, sequence and version."""

import time
from typing import Any

from tests.support.requests.same import Plain, Side
from tests.support.waiting import until

from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NOW = time.time_ns() // 1_000_000
TIMEOUT_MS = 60_000
NEWEST_INIT, NEWEST_ADD, NEWEST_END, NEWEST_PRODUCE = 5, 3, 5, 13
CONCURRENT_TRANSACTIONS = 51
NOT_READY = (14, 15, 16)  # the coordinator is loading, not available, or not this one


class Transactional:
    """`producer_id` and `epoch` are the last ones from the broker; each method can use others."""

    def __init__(self, side: Side, transactional_id: str) -> None:
        self.side = side
        self.id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def find(self) -> "Transactional":
        """Wait for the coordinator: Kafka creates its topic on first use, and loads it a moment later."""
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.id])
        until(lambda: self.side.call(asked, 6), lambda found: found["coordinators"][0]["error_code"] == 0)
        until(self.describe, lambda found: found["error_code"] not in NOT_READY)
        anybody = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)  # producer ids are ready, too
        until(lambda: self.side.call(anybody, 5), lambda found: found["error_code"] == 0)
        return self

    def init(self, version: int = NEWEST_INIT, timeout_ms: int = TIMEOUT_MS, **fields: Any) -> Plain:
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=timeout_ms, **fields)
        answer = self.side.answer(request, version)
        assert isinstance(answer, InitProducerIdResponse)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return self.side.plain(answer, version)

    def begin(self) -> "Transactional":
        """Get a producer id and an epoch, whatever state the transaction is in."""
        code = until(lambda: self.init()["error_code"], lambda code: code != CONCURRENT_TRANSACTIONS)
        assert code == 0, code
        return self

    def _producer(self, fields: dict[str, Any]) -> tuple[int, int]:
        return fields.get("producer_id", self.producer_id), fields.get("epoch", self.epoch)

    def add(
        self, topic: str, *partitions: int, version: int = NEWEST_ADD, verify: bool = False, **fields: Any
    ) -> Plain:
        producer_id, epoch = self._producer(fields)
        topics = [Topic(name=topic, partitions=list(partitions))]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
        else:
            one = AddPartitionsToTxnRequest.Transaction(
                transactional_id=self.id,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=verify,
                topics=topics,
            )
            request = AddPartitionsToTxnRequest(transactions=[one])
        return self.side.call(request, version)

    def add_offsets(self, group: str, version: int = 4, **fields: Any) -> Plain:
        producer_id, epoch = self._producer(fields)
        request = AddOffsetsToTxnRequest(
            transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        return self.side.call(request, version)

    def batch(self, where: tuple[str, int], value: bytes = b"v", **fields: Any) -> bytes:
        producer_id, epoch = self._producer(fields)
        sequence = fields.get("sequence", self.sequences.get(where, 0))
        return bytes(
            build_batch(
                [Record(0, NOW, b"k", value, ())],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=fields.get("transactional", True),
            )
        )

    def produce(self, topic: str, partition: int = 0, version: int = NEWEST_PRODUCE, **fields: Any) -> Plain:
        where = (topic, partition)
        data = ProduceRequest.TopicProduceData
        one = data(
            name=topic,
            topic_id=self.side.ids.get(topic, bytes(range(16))),
            partition_data=[data.PartitionProduceData(index=partition, records=self.batch(where, **fields))],
        )
        id = fields.get("transactional_id", self.id)
        answer = self.side.call(
            ProduceRequest(transactional_id=id, acks=-1, timeout_ms=10_000, topic_data=[one]), version
        )
        if answer["responses"][0]["partition_responses"][0]["error_code"] == 0:
            self.sequences[where] = fields.get("sequence", self.sequences.get(where, 0)) + 1
        return answer

    def end(self, commit: bool = True, version: int = NEWEST_END, **fields: Any) -> Plain:
        producer_id, epoch = self._producer(fields)
        request = EndTxnRequest(
            transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        answer = self.side.answer(request, version)
        assert isinstance(answer, EndTxnResponse)
        if version >= 5 and answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return self.side.plain(answer, version)

    def ended(self, commit: bool = True, version: int = NEWEST_END, **fields: Any) -> Plain:
        """End the transaction, and wait until all markers are written."""
        answer = self.end(commit, version, **fields)
        self.rest()
        return answer

    def rest(self) -> "Transactional":
        until(self.describe, lambda found: not found["transaction_state"].startswith("Prepare"))
        return self

    def describe(self) -> Plain:
        answer = self.side.call(DescribeTransactionsRequest(transactional_ids=[self.id]), 0)
        (state,) = answer["transaction_states"]
        if state["transaction_start_time_ms"] > 0:
            state["transaction_start_time_ms"] = "TIME"
        for topic in state["topics"]:
            topic["partitions"].sort()
        return state
