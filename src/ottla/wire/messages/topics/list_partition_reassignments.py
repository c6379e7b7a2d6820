"""ListPartitionReassignments (key 46): moves of replicas that are under way."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, String


class ListPartitionReassignmentsRequest(
    Request["ListPartitionReassignmentsResponse"], key=46, versions="0", flexible="0+"
):
    timeout_ms: Int32 = 60000

    class Topics(Struct):
        name: String
        partition_indexes: list[Int32]

    topics: list[Topics] | None = None


class ListPartitionReassignmentsResponse(Response, key=46, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None

    class OngoingTopicReassignment(Struct):
        name: String

        class OngoingPartitionReassignment(Struct):
            partition_index: Int32
            replicas: list[Int32]
            adding_replicas: list[Int32]
            removing_replicas: list[Int32]

        partitions: list[OngoingPartitionReassignment]

    topics: list[OngoingTopicReassignment]
