"""AlterShareGroupOffsets (key 91): set start offsets of a share group."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, Int64, String, Uuid


class AlterShareGroupOffsetsRequest(Request["AlterShareGroupOffsetsResponse"], key=91, versions="0", flexible="0+"):
    group_id: String

    class Topic(Struct):
        topic_name: String

        class Partition(Struct):
            partition_index: Int32
            start_offset: Int64

        partitions: list[Partition]

    topics: list[Topic]


class AlterShareGroupOffsetsResponse(Response, key=91, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None

    class Topic(Struct):
        topic_name: String
        topic_id: Uuid

        class Partition(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: String | None = None

        partitions: list[Partition]

    responses: list[Topic]
