"""DescribeTransactions (key 65): state of transactional ids at their coordinator."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, Int64, ProducerEpoch, ProducerId, String


class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"], key=65, versions="0", flexible="0+"):
    transactional_ids: list[String]


class DescribeTransactionsResponse(Response, key=65, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0

    class TransactionState(Struct):
        error_code: Int16
        transactional_id: String
        transaction_state: String
        transaction_timeout_ms: Int32
        transaction_start_time_ms: Int64
        producer_id: ProducerId
        producer_epoch: ProducerEpoch

        class TopicData(Struct):
            topic: String
            partitions: list[Int32]

        topics: list[TopicData]

    transaction_states: list[TransactionState]
