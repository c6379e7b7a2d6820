"""Produce (key 0): append record batches to partitions this broker leads.

v3   record batches of magic 2, transactions
v4   KAFKA_STORAGE_ERROR possible
v5   response + log_start_offset
v6   throttling happens after the answer
v7   zstd
v8   errors of single records (KIP-467); response + record_errors, error_message
v9   flexible
v10  leader hints (KIP-951); response + current_leader, node_endpoints
v11  TRANSACTION_ABORTABLE possible (KIP-890)
v12  partitions join the transaction implicitly (KIP-890)
v13  topics by id (KIP-516); request + topic_id - name; response + topic_id - name

A broker advertises Produce from version 0 on, though it refuses 0 to 2: librdkafka gives up otherwise (KAFKA-18659).
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, NO_LEADER_EPOCH, Int16, Int32, Int64, LeaderEpoch, Records, String, Uuid


class ProduceRequest(Request["ProduceResponse"], key=0, versions="3-13", flexible="9+"):
    transactional_id: String | None = None
    acks: Int16
    timeout_ms: Int32

    class TopicProduceData(Struct):
        name: String = on("0-12", "")
        topic_id: Uuid = on("13+", NO_ID)

        class PartitionProduceData(Struct):
            index: Int32
            records: Records | None

        partition_data: list[PartitionProduceData]

    topic_data: list[TopicProduceData]


class ProduceResponse(Response, key=0, versions="3-13", flexible="9+"):
    class TopicProduceResponse(Struct):
        name: String = on("0-12", "")
        topic_id: Uuid = on("13+", NO_ID)

        class PartitionProduceResponse(Struct):
            index: Int32
            error_code: Int16
            base_offset: Int64
            log_append_time_ms: Int64 = -1
            log_start_offset: Int64 = on("5+", -1)

            class BatchIndexAndErrorMessage(Struct):
                batch_index: Int32
                batch_index_error_message: String | None = None

            record_errors: list[BatchIndexAndErrorMessage] = on("8+", [])
            error_message: String | None = on("8+", None)

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = -1
                leader_epoch: LeaderEpoch = NO_LEADER_EPOCH

            current_leader: LeaderIdAndEpoch = on("10+", LeaderIdAndEpoch, tag=0)

        partition_responses: list[PartitionProduceResponse]

    responses: list[TopicProduceResponse]
    throttle_time_ms: Int32 = 0

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = None

    node_endpoints: list[NodeEndpoint] = on("10+", [], tag=0)
