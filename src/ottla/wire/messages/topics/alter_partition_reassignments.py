"""AlterPartitionReassignments (key 45): give partitions a new set of replicas, or cancel such a move.

v1   the replication factor may be frozen; request + allow_replication_factor_change; response +
     allow_replication_factor_change
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int16, Int32, String


class AlterPartitionReassignmentsRequest(
    Request["AlterPartitionReassignmentsResponse"], key=45, versions="0-1", flexible="0+"
):
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = on("1+", True)

    class ReassignableTopic(Struct):
        name: String

        class ReassignablePartition(Struct):
            partition_index: Int32
            replicas: list[Int32] | None = None

        partitions: list[ReassignablePartition]

    topics: list[ReassignableTopic]


class AlterPartitionReassignmentsResponse(Response, key=45, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = on("1+", True)
    error_code: Int16
    error_message: String | None

    class ReassignableTopicResponse(Struct):
        name: String

        class ReassignablePartitionResponse(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: String | None

        partitions: list[ReassignablePartitionResponse]

    responses: list[ReassignableTopicResponse]
