"""DeleteRecords (key 21): move the log start offset of partitions forward, deleting the records before it.

v1   throttling happens after the answer
v2   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, Int64, String


class DeleteRecordsRequest(Request["DeleteRecordsResponse"], key=21, versions="0-2", flexible="2+"):
    class Topic(Struct):
        name: String

        class Partition(Struct):
            partition_index: Int32
            offset: Int64

        partitions: list[Partition]

    topics: list[Topic]
    timeout_ms: Int32


class DeleteRecordsResponse(Response, key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0

    class TopicResult(Struct):
        name: String

        class PartitionResult(Struct):
            partition_index: Int32
            low_watermark: Int64
            error_code: Int16

        partitions: list[PartitionResult]

    topics: list[TopicResult]
