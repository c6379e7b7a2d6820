"""OffsetDelete (key 47): delete a classic group's offsets of some partitions."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, String


class OffsetDeleteRequest(Request["OffsetDeleteResponse"], key=47, versions="0"):
    group_id: String

    class Topic(Struct):
        name: String

        class Partition(Struct):
            partition_index: Int32

        partitions: list[Partition]

    topics: list[Topic]


class OffsetDeleteResponse(Response, key=47, versions="0"):
    error_code: Int16
    throttle_time_ms: Int32 = 0

    class Topic(Struct):
        name: String

        class Partition(Struct):
            partition_index: Int32
            error_code: Int16

        partitions: list[Partition]

    topics: list[Topic]
