"""WriteShareGroupState (key 85): a share-partition leader stores changes of its state.

v1   count of delivered records; request + delivery_complete_count
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int8, Int16, Int32, Int64, LeaderEpoch, String, Uuid


class WriteShareGroupStateRequest(Request["WriteShareGroupStateResponse"], key=85, versions="0-1", flexible="0+"):
    group_id: String

    class WriteStateData(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition: Int32
            state_epoch: Int32
            leader_epoch: LeaderEpoch
            start_offset: Int64
            delivery_complete_count: Int32 = on("1+", -1)

            class StateBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_state: Int8
                delivery_count: Int16

            state_batches: list[StateBatch]

        partitions: list[PartitionData]

    topics: list[WriteStateData]


class WriteShareGroupStateResponse(Response, key=85, versions="0-1", flexible="0+"):
    class WriteStateResult(Struct):
        topic_id: Uuid

        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: String | None = None

        partitions: list[PartitionResult]

    results: list[WriteStateResult]
