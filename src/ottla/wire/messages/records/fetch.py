"""Fetch (key 1): read record batches of partitions; consumers, followers and controllers use it.

v4   record batches of magic 2, aborted transactions
v5   request + log_start_offset; response + log_start_offset
v6   KAFKA_STORAGE_ERROR possible
v7   fetch sessions (KIP-227); request + session_id, session_epoch, forgotten_topics_data; response +
     error_code, session_id
v8   throttling happens after the answer
v9   leader epochs (KIP-320); request + current_leader_epoch
v10  zstd
v11  reading from followers (KIP-392); request + rack_id; response + preferred_read_replica
v12  diverging epochs found on fetch (KIP-595); flexible; request + cluster_id, last_fetched_epoch; response +
     diverging_epoch, current_leader, snapshot_id
v13  topics by id (KIP-516); request + topic_id - topic; response + topic_id - topic
v14  OFFSET_MOVED_TO_TIERED_STORAGE possible (KIP-405)
v15  replica epochs (KIP-903); request + replica_state - replica_id
v16  leader hints (KIP-951); response + node_endpoints
v17  directory ids (KIP-853); request + replica_directory_id
v18  followers tell the high watermark they know (KIP-1166); request + high_watermark
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import (
    NO_BROKER_EPOCH,
    NO_ID,
    NO_LEADER_EPOCH,
    BrokerEpoch,
    Int8,
    Int16,
    Int32,
    Int64,
    LeaderEpoch,
    ProducerId,
    Records,
    String,
    Uuid,
)


class FetchRequest(Request["FetchResponse"], key=1, versions="4-18", flexible="12+"):
    cluster_id: String | None = on("12+", None, tag=0)
    replica_id: Int32 = on("0-14", -1)

    class ReplicaState(Struct):
        replica_id: Int32 = -1
        replica_epoch: BrokerEpoch = NO_BROKER_EPOCH

    replica_state: ReplicaState = on("15+", ReplicaState, tag=1)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 0x7FFFFFFF
    isolation_level: Int8 = 0
    session_id: Int32 = on("7+", 0)
    session_epoch: Int32 = on("7+", -1)

    class Topic(Struct):
        topic: String = on("0-12", "")
        topic_id: Uuid = on("13+", NO_ID)

        class Partition(Struct):
            partition: Int32
            current_leader_epoch: LeaderEpoch = on("9+", NO_LEADER_EPOCH)
            fetch_offset: Int64
            last_fetched_epoch: LeaderEpoch = on("12+", NO_LEADER_EPOCH)
            log_start_offset: Int64 = on("5+", -1)
            partition_max_bytes: Int32
            replica_directory_id: Uuid = on("17+", NO_ID, tag=0)
            high_watermark: Int64 = on("18+", 0x7FFFFFFFFFFFFFFF, tag=1)

        partitions: list[Partition]

    topics: list[Topic]

    class ForgottenTopic(Struct):
        topic: String = on("7-12", "")
        topic_id: Uuid = on("13+", NO_ID)
        partitions: list[Int32]

    forgotten_topics_data: list[ForgottenTopic] = on("7+", [])
    rack_id: String = on("11+", "")


class FetchResponse(Response, key=1, versions="4-18", flexible="12+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = on("7+", 0)
    session_id: Int32 = on("7+", 0)

    class FetchableTopicResponse(Struct):
        topic: String = on("0-12", "")
        topic_id: Uuid = on("13+", NO_ID)

        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            high_watermark: Int64
            last_stable_offset: Int64 = -1
            log_start_offset: Int64 = on("5+", -1)

            class EpochEndOffset(Struct):
                epoch: LeaderEpoch = NO_LEADER_EPOCH
                end_offset: Int64 = -1

            diverging_epoch: EpochEndOffset = on("12+", EpochEndOffset, tag=0)

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = -1
                leader_epoch: LeaderEpoch = NO_LEADER_EPOCH

            current_leader: LeaderIdAndEpoch = on("12+", LeaderIdAndEpoch, tag=1)

            class SnapshotId(Struct):
                end_offset: Int64 = -1
                epoch: LeaderEpoch = NO_LEADER_EPOCH

            snapshot_id: SnapshotId = on("12+", SnapshotId, tag=2)

            class AbortedTransaction(Struct):
                producer_id: ProducerId
                first_offset: Int64

            aborted_transactions: list[AbortedTransaction] | None
            preferred_read_replica: Int32 = on("11+", -1)
            records: Records | None

        partitions: list[PartitionData]

    responses: list[FetchableTopicResponse]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = None

    node_endpoints: list[NodeEndpoint] = on("16+", [], tag=0)
