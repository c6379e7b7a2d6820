"""EndQuorumEpoch (key 54): a resigning KRaft leader tells the voters, naming its preferred successors.

v1   endpoints and candidates with directory ids (KIP-853); flexible; request + preferred_candidates,
     leader_endpoints - preferred_successors; response + node_endpoints
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int16, Int32, LeaderEpoch, String, UInt16, Uuid


class EndQuorumEpochRequest(Request["EndQuorumEpochResponse"], key=54, versions="0-1", flexible="1+"):
    cluster_id: String | None = None

    class TopicData(Struct):
        topic_name: String

        class PartitionData(Struct):
            partition_index: Int32
            leader_id: Int32
            leader_epoch: LeaderEpoch
            preferred_successors: list[Int32] = on("0", [])

            class ReplicaInfo(Struct):
                candidate_id: Int32
                candidate_directory_id: Uuid

            preferred_candidates: list[ReplicaInfo] = on("1+", [])

        partitions: list[PartitionData]

    topics: list[TopicData]

    class LeaderEndpoint(Struct):
        name: String
        host: String
        port: UInt16

    leader_endpoints: list[LeaderEndpoint] = on("1+", [])


class EndQuorumEpochResponse(Response, key=54, versions="0-1", flexible="1+"):
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
