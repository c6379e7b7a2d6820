"""Vote (key 52): a KRaft candidate asks for a vote (or asks first whether it would get one).

v1   voter keys with directory ids (KIP-853); request + voter_id, replica_directory_id, voter_directory_id;
     response + node_endpoints
v2   pre-vote (KIP-996); request + pre_vote
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, Bool, Int16, Int32, Int64, LeaderEpoch, String, UInt16, Uuid


class VoteRequest(Request["VoteResponse"], key=52, versions="0-2", flexible="0+"):
    cluster_id: String | None = None
    voter_id: Int32 = on("1+", -1)

    class TopicData(Struct):
        topic_name: String

        class PartitionData(Struct):
            partition_index: Int32
            replica_epoch: LeaderEpoch
            replica_id: Int32
            replica_directory_id: Uuid = on("1+", NO_ID)
            voter_directory_id: Uuid = on("1+", NO_ID)
            last_offset_epoch: LeaderEpoch
            last_offset: Int64
            pre_vote: Bool = on("2+", False)

        partitions: list[PartitionData]

    topics: list[TopicData]


class VoteResponse(Response, key=52, versions="0-2", flexible="0+"):
    error_code: Int16

    class TopicData(Struct):
        topic_name: String

        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            leader_id: Int32
            leader_epoch: LeaderEpoch
            vote_granted: Bool

        partitions: list[PartitionData]

    topics: list[TopicData]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: UInt16

    node_endpoints: list[NodeEndpoint] = on("1+", [], tag=0)
