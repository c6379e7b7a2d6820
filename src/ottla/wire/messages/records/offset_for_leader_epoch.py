"""OffsetForLeaderEpoch (key 23): where a leader epoch ended in the leader's log; shows where logs diverge.

v3   followers name themselves; request + replica_id
v4   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_LEADER_EPOCH, Int16, Int32, Int64, LeaderEpoch, String


class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"], key=23, versions="2-4", flexible="4+"):
    replica_id: Int32 = on("3+", -2)

    class OffsetForLeaderTopic(Struct):
        topic: String

        class OffsetForLeaderPartition(Struct):
            partition: Int32
            current_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
            leader_epoch: LeaderEpoch

        partitions: list[OffsetForLeaderPartition]

    topics: list[OffsetForLeaderTopic]


class OffsetForLeaderEpochResponse(Response, key=23, versions="2-4", flexible="4+"):
    throttle_time_ms: Int32 = 0

    class OffsetForLeaderTopicResult(Struct):
        topic: String

        class EpochEndOffset(Struct):
            error_code: Int16
            partition: Int32
            leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
            end_offset: Int64 = -1

        partitions: list[EpochEndOffset]

    topics: list[OffsetForLeaderTopicResult]
