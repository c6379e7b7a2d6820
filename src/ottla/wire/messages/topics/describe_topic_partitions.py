"""DescribeTopicPartitions (key 75): topics with their partitions, page by page."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import NO_LEADER_EPOCH, Bool, Int16, Int32, LeaderEpoch, String, Uuid


class DescribeTopicPartitionsRequest(Request["DescribeTopicPartitionsResponse"], key=75, versions="0", flexible="0+"):
    class TopicRequest(Struct):
        name: String

    topics: list[TopicRequest]
    response_partition_limit: Int32 = 2000

    class Cursor(Struct):
        topic_name: String
        partition_index: Int32

    cursor: Cursor | None = None


class DescribeTopicPartitionsResponse(Response, key=75, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0

    class Topic(Struct):
        error_code: Int16
        name: String | None
        topic_id: Uuid
        is_internal: Bool = False

        class Partition(Struct):
            error_code: Int16
            partition_index: Int32
            leader_id: Int32
            leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
            replica_nodes: list[Int32]
            isr_nodes: list[Int32]
            eligible_leader_replicas: list[Int32] | None = None
            last_known_elr: list[Int32] | None = None
            offline_replicas: list[Int32]

        partitions: list[Partition]
        topic_authorized_operations: Int32 = -0x80000000

    topics: list[Topic]

    class Cursor(Struct):
        topic_name: String
        partition_index: Int32

    next_cursor: Cursor | None = None
