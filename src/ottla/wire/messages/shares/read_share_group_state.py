"""ReadShareGroupState (key 84): a share-partition leader loads its stored state."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int8, Int16, Int32, Int64, LeaderEpoch, String, Uuid


class ReadShareGroupStateRequest(Request["ReadShareGroupStateResponse"], key=84, versions="0", flexible="0+"):
    group_id: String

    class ReadStateData(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition: Int32
            leader_epoch: LeaderEpoch

        partitions: list[PartitionData]

    topics: list[ReadStateData]


class ReadShareGroupStateResponse(Response, key=84, versions="0", flexible="0+"):
    class ReadStateResult(Struct):
        topic_id: Uuid

        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: String | None = None
            state_epoch: Int32
            start_offset: Int64

            class StateBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_state: Int8
                delivery_count: Int16

            state_batches: list[StateBatch]

        partitions: list[PartitionResult]

    results: list[ReadStateResult]
