"""ElectLeaders (key 43): elect leaders for partitions: the preferred replica, or an unclean one.

v1   unclean elections; request + election_type; response + error_code
v2   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int8, Int16, Int32, String


class ElectLeadersRequest(Request["ElectLeadersResponse"], key=43, versions="0-2", flexible="2+"):
    election_type: Int8 = on("1+", 0)

    class TopicPartitions(Struct):
        topic: String
        partitions: list[Int32]

    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = 60000


class ElectLeadersResponse(Response, key=43, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = on("1+", 0)

    class ReplicaElectionResult(Struct):
        topic: String

        class PartitionResult(Struct):
            partition_id: Int32
            error_code: Int16
            error_message: String | None

        partition_result: list[PartitionResult]

    replica_election_results: list[ReplicaElectionResult]
