"""InitializeShareGroupState (key 83): the group coordinator sets up the stored state of share partitions."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, Int64, String, Uuid


class InitializeShareGroupStateRequest(
    Request["InitializeShareGroupStateResponse"], key=83, versions="0", flexible="0+"
):
    group_id: String

    class InitializeStateData(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition: Int32
            state_epoch: Int32
            start_offset: Int64

        partitions: list[PartitionData]

    topics: list[InitializeStateData]


class InitializeShareGroupStateResponse(Response, key=83, versions="0", flexible="0+"):
    class InitializeStateResult(Struct):
        topic_id: Uuid

        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: String | None = None

        partitions: list[PartitionResult]

    results: list[InitializeStateResult]
