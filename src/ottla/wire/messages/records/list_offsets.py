"""ListOffsets (key 2): the offset of a partition that belongs to a timestamp, or its first or last.

v1   one offset per partition
v2   isolation levels; request + isolation_level; response + throttle_time_ms
v3   throttling happens after the answer
v4   request + current_leader_epoch; response + leader_epoch
v5   OFFSET_NOT_AVAILABLE possible
v6   flexible
v7   timestamp -3: offset of the highest timestamp (KIP-734)
v8   timestamp -4: first offset kept locally (KIP-405)
v9   timestamp -5: last tiered offset (KIP-1005)
v10  the wait may be bounded (KIP-1075); request + timeout_ms
v11  timestamp -6: first offset still to be uploaded (KIP-1023)

Ottla's own are tags that Kafka skips, answered only if the request asks for them: `unread_from` asks for the times at
which the first records at or after these offsets were written (`record_times_ms`, in the same order; -1: no time,
-2: no record).
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_LEADER_EPOCH, Int8, Int16, Int32, Int64, LeaderEpoch, String


class ListOffsetsRequest(Request["ListOffsetsResponse"], key=2, versions="1-11", flexible="6+"):
    replica_id: Int32
    isolation_level: Int8 = on("2+", 0)

    class Topic(Struct):
        name: String

        class Partition(Struct):
            partition_index: Int32
            current_leader_epoch: LeaderEpoch = on("4+", NO_LEADER_EPOCH)
            timestamp: Int64
            unread_from: list[Int64] = on("6+", [], tag=10_000)

        partitions: list[Partition]

    topics: list[Topic]
    timeout_ms: Int32 = on("10+", 0)


class ListOffsetsResponse(Response, key=2, versions="1-11", flexible="6+"):
    throttle_time_ms: Int32 = on("2+", 0)

    class TopicResponse(Struct):
        name: String

        class PartitionResponse(Struct):
            partition_index: Int32
            error_code: Int16
            timestamp: Int64 = -1
            offset: Int64 = -1
            leader_epoch: LeaderEpoch = on("4+", NO_LEADER_EPOCH)
            record_times_ms: list[Int64] = on("6+", [], tag=10_000)

        partitions: list[PartitionResponse]

    topics: list[TopicResponse]
