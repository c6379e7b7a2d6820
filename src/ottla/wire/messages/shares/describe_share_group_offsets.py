"""DescribeShareGroupOffsets (key 90): start offsets of a share group.

v1   lag; response + lag
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int16, Int32, Int64, LeaderEpoch, String, Uuid


class DescribeShareGroupOffsetsRequest(
    Request["DescribeShareGroupOffsetsResponse"], key=90, versions="0-1", flexible="0+"
):
    class Group(Struct):
        group_id: String

        class Topic(Struct):
            topic_name: String
            partitions: list[Int32]

        topics: list[Topic] | None

    groups: list[Group]


class DescribeShareGroupOffsetsResponse(Response, key=90, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0

    class Group(Struct):
        group_id: String

        class Topic(Struct):
            topic_name: String
            topic_id: Uuid

            class Partition(Struct):
                partition_index: Int32
                start_offset: Int64
                leader_epoch: LeaderEpoch
                lag: Int64 = on("1+", -1)
                error_code: Int16
                error_message: String | None = None

            partitions: list[Partition]

        topics: list[Topic]
        error_code: Int16
        error_message: String | None = None

    groups: list[Group]
