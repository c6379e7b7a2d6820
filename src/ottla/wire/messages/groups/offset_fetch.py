"""OffsetFetch (key 9): ask how far groups have read.

v1   offsets from the coordinator's log
v2   null topics means all; request null topics; response + error_code
v3   response + throttle_time_ms
v4   throttling happens after the answer
v5   response + committed_leader_epoch
v6   flexible
v7   pending transactional offsets may be awaited; request + require_stable
v8   many groups at once; request + groups - group_id, topics; response + groups - topics, error_code
v9   consumer groups (KIP-848), STALE_MEMBER_EPOCH possible; request + member_id, member_epoch
v10  topics by id; request + topic_id - name; response + topic_id - name
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, NO_LEADER_EPOCH, Bool, Int16, Int32, Int64, LeaderEpoch, String, Uuid


class OffsetFetchRequest(Request["OffsetFetchResponse"], key=9, versions="1-10", flexible="6+"):
    group_id: String = on("0-7", "")

    class Topic(Struct):
        name: String
        partition_indexes: list[Int32]

    topics: list[Topic] | None = on("0-7", [], nullable="2-7")

    class Group(Struct):
        group_id: String
        member_id: String | None = on("9+", None)
        member_epoch: Int32 = on("9+", -1)

        class Topics(Struct):
            name: String = on("8-9", "")
            topic_id: Uuid = on("10+", NO_ID)
            partition_indexes: list[Int32]

        topics: list[Topics] | None

    groups: list[Group] = on("8+", [])
    require_stable: Bool = on("7+", False)


class OffsetFetchResponse(Response, key=9, versions="1-10", flexible="6+"):
    throttle_time_ms: Int32 = on("3+", 0)

    class Topic(Struct):
        name: String

        class Partition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: LeaderEpoch = on("5-7", NO_LEADER_EPOCH)
            metadata: String | None
            error_code: Int16

        partitions: list[Partition]

    topics: list[Topic] = on("0-7", [])
    error_code: Int16 = on("2-7", 0)

    class Group(Struct):
        group_id: String

        class Topics(Struct):
            name: String = on("8-9", "")
            topic_id: Uuid = on("10+", NO_ID)

            class Partitions(Struct):
                partition_index: Int32
                committed_offset: Int64
                committed_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
                metadata: String | None
                error_code: Int16

            partitions: list[Partitions]

        topics: list[Topics]
        error_code: Int16 = 0

    groups: list[Group] = on("8+", [])
