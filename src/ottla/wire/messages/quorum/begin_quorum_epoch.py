"""BeginQuorumEpoch (key 53): a new KRaft leader announces itself to the voters.

v1   endpoints and voter keys (KIP-853); flexible; request + voter_id, voter_directory_id, leader_endpoints;
     response + node_endpoints
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, Int16, Int32, LeaderEpoch, String, UInt16, Uuid


class BeginQuorumEpochRequest(Request["BeginQuorumEpochResponse"], key=53, versions="0-1", flexible="1+"):
    cluster_id: String | None = None
    voter_id: Int32 = on("1+", -1)

    class TopicData(Struct):
        topic_name: String

        class PartitionData(Struct):
            partition_index: Int32
            voter_directory_id: Uuid = on("1+", NO_ID)
            leader_id: Int32
            leader_epoch: LeaderEpoch

        partitions: list[PartitionData]

    topics: list[TopicData]

    class LeaderEndpoint(Struct):
        name: String
        host: String
        port: UInt16

    leader_endpoints: list[LeaderEndpoint] = on("1+", [])


class BeginQuorumEpochResponse(Response, key=53, versions="0-1", flexible="1+"):
    error_code: Int16

    class TopicData(Struct):
        topic_name: String

        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            leader_id: Int32
            leader_epoch: LeaderEpoch

        partitions: list[PartitionData]

    topics: list[TopicData]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: UInt16

    node_endpoints: list[NodeEndpoint] = on("1+", [], tag=0)
