"""DescribeProducers (key 61): the producers a partition leader remembers."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, Int64, ProducerId, String


class DescribeProducersRequest(Request["DescribeProducersResponse"], key=61, versions="0", flexible="0+"):
    class TopicRequest(Struct):
        name: String
        partition_indexes: list[Int32]

    topics: list[TopicRequest]


class DescribeProducersResponse(Response, key=61, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0

    class TopicResponse(Struct):
        name: String

        class PartitionResponse(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: String | None = None

            class ProducerState(Struct):
                producer_id: ProducerId
                producer_epoch: Int32
                last_sequence: Int32 = -1
                last_timestamp: Int64 = -1
                coordinator_epoch: Int32
                current_txn_start_offset: Int64 = -1

            active_producers: list[ProducerState]

        partitions: list[PartitionResponse]

    topics: list[TopicResponse]
