"""DeleteShareGroupState (key 86): the group coordinator drops the stored state of share partitions."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, String, Uuid


class DeleteShareGroupStateRequest(Request["DeleteShareGroupStateResponse"], key=86, versions="0", flexible="0+"):
    group_id: String

    class DeleteStateData(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition: Int32

        partitions: list[PartitionData]

    topics: list[DeleteStateData]


class DeleteShareGroupStateResponse(Response, key=86, versions="0", flexible="0+"):
    class DeleteStateResult(Struct):
        topic_id: Uuid

        class PartitionResult(Struct):
            partition: Int32
            error_code: Int16
            error_message: String | None = None

        partitions: list[PartitionResult]

    results: list[DeleteStateResult]
