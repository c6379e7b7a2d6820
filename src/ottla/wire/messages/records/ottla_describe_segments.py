"""OttlaDescribeSegments (key 30001): the segments of partitions on the broker that is asked. Kafka has no such API (ADR
0052).

v0   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int16, Int32, Int64, String


class OttlaDescribeSegmentsRequest(Request["OttlaDescribeSegmentsResponse"], key=30001, versions="0", flexible="0+"):
    topic: String
    partition_indexes: list[Int32]


class OttlaDescribeSegmentsResponse(Response, key=30001, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None

    class Partition(Struct):
        partition_index: Int32
        error_code: Int16
        error_message: String | None = None
        is_leader: Bool = False
        log_start_offset: Int64 = -1
        high_watermark: Int64 = -1
        end_offset: Int64 = -1
        segment_count: Int32 = 0  # all of them; the newest are described

        class Segment(Struct):
            base_offset: Int64
            size_bytes: Int64
            offset_index_bytes: Int64
            time_index_bytes: Int64
            transaction_index_bytes: Int64
            largest_timestamp: Int64
            is_active: Bool

        segments: list[Segment]

    partitions: list[Partition]
