"""AddPartitionsToTxn (key 24): partitions join a producer's transaction; brokers ask whether they have.

v1   throttling happens after the answer
v2   PRODUCER_FENCED possible
v3   flexible
v4   batches of transactions, for brokers only (KIP-890); request + transactions -
     v3_and_below_transactional_id, v3_and_below_producer_id, v3_and_below_producer_epoch,
     v3_and_below_topics; response + error_code, results_by_transaction - results_by_topic_v3_and_below
v5   TRANSACTION_ABORTABLE possible (KIP-890)
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int16, Int32, ProducerEpoch, ProducerId, String


class Topic(Struct):
    name: String
    partitions: list[Int32]


class PartitionResult(Struct):
    partition_index: Int32
    partition_error_code: Int16


class TopicResult(Struct):
    name: String
    results_by_partition: list[PartitionResult]


class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"], key=24, versions="0-5", flexible="3+"):
    class Transaction(Struct):
        transactional_id: String
        producer_id: ProducerId
        producer_epoch: ProducerEpoch
        verify_only: Bool = False
        topics: list[Topic]

    transactions: list[Transaction] = on("4+", [])
    v3_and_below_transactional_id: String = on("0-3", "")
    v3_and_below_producer_id: ProducerId = on("0-3", ProducerId(0))
    v3_and_below_producer_epoch: ProducerEpoch = on("0-3", ProducerEpoch(0))
    v3_and_below_topics: list[Topic] = on("0-3", [])


class AddPartitionsToTxnResponse(Response, key=24, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = on("4+", 0)

    class Result(Struct):
        transactional_id: String
        topic_results: list[TopicResult]

    results_by_transaction: list[Result] = on("4+", [])
    results_by_topic_v3_and_below: list[TopicResult] = on("0-3", [])
