"""ReadShareGroupStateSummary (key 87): start offset and progress of share partitions, without the detail.

v1   count of delivered records; response + delivery_complete_count
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int16, Int32, Int64, LeaderEpoch, String, Uuid


class ReadShareGroupStateSummaryRequest(
    Request["ReadShareGroupStateSummaryResponse"], key=87, versions="0-1", flexible="0+"
):
    group_id: String

    class ReadStateSummaryData(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition: Int32
            leader_epoch: LeaderEpoch

        partitions: list[PartitionData]

    topics: list[ReadStateSummaryData]


class ReadShareGroupStateSummaryResponse(Response, key=87, versions="0-1", flexible="0+"):
    class ReadStateSummaryResult(Struct):
        topic_id: Uuid

        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: String | None = None
            state_epoch: Int32
            leader_epoch: LeaderEpoch
            start_offset: Int64
            delivery_complete_count: Int32 = on("1+", -1)

        partitions: list[PartitionResult]

    results: list[ReadStateSummaryResult]
