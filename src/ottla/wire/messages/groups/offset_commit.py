"""OffsetCommit (key 8): store how far a group has read.

v3   response + throttle_time_ms
v4   throttling happens after the answer
v5   request - retention_time_ms
v6   request + committed_leader_epoch
v7   static members (KIP-345); request + group_instance_id
v8   flexible
v9   consumer groups (KIP-848), GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH possible
v10  topics by id; request + topic_id - name; response + topic_id - name
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, NO_LEADER_EPOCH, Int16, Int32, Int64, LeaderEpoch, String, Uuid


class OffsetCommitRequest(Request["OffsetCommitResponse"], key=8, versions="2-10", flexible="8+"):
    group_id: String
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: String | None = on("7+", None)
    retention_time_ms: Int64 = on("2-4", -1)

    class Topic(Struct):
        name: String = on("0-9", "")
        topic_id: Uuid = on("10+", NO_ID)

        class Partition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: LeaderEpoch = on("6+", NO_LEADER_EPOCH)
            committed_metadata: String | None

        partitions: list[Partition]

    topics: list[Topic]


class OffsetCommitResponse(Response, key=8, versions="2-10", flexible="8+"):
    throttle_time_ms: Int32 = on("3+", 0)

    class Topic(Struct):
        name: String = on("0-9", "")
        topic_id: Uuid = on("10+", NO_ID)

        class Partition(Struct):
            partition_index: Int32
            error_code: Int16

        partitions: list[Partition]

    topics: list[Topic]
