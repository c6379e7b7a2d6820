"""DescribeQuorum (key 55): leader, voters and observers of the metadata quorum, and how far each has read.

v1   when voters last fetched; response + last_fetch_timestamp, last_caught_up_timestamp
v2   voters' directory ids and endpoints (KIP-853); response + replica_directory_id, error_message, nodes

`in_doubt` is Ottla's own: a tag that Kafka skips, and that is sent only when there are voters in doubt.
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, Bool, Int16, Int32, Int64, LeaderEpoch, String, UInt16, Uuid


class ReplicaState(Struct):
    replica_id: Int32
    replica_directory_id: Uuid = on("2+", NO_ID)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = on("1+", -1)
    last_caught_up_timestamp: Int64 = on("1+", -1)


class DescribeQuorumRequest(Request["DescribeQuorumResponse"], key=55, versions="0-2", flexible="0+"):
    class TopicData(Struct):
        topic_name: String

        class PartitionData(Struct):
            partition_index: Int32

        partitions: list[PartitionData]

    topics: list[TopicData]


class DescribeQuorumResponse(Response, key=55, versions="0-2", flexible="0+"):
    error_code: Int16
    error_message: String | None = on("2+", "")

    class TopicData(Struct):
        topic_name: String

        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: String | None = on("2+", "")
            leader_id: Int32
            leader_epoch: LeaderEpoch
            high_watermark: Int64
            current_voters: list[ReplicaState]
            observers: list[ReplicaState]

        partitions: list[PartitionData]

    topics: list[TopicData]

    class Node(Struct):
        node_id: Int32

        class Listener(Struct):
            name: String
            host: String
            port: UInt16

        listeners: list[Listener]

    nodes: list[Node] = on("2+", [])
    in_doubt: Bool = on("0+", False, tag=10_000)
