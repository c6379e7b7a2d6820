"""ShareAcknowledge (key 79): acknowledge records of share partitions without fetching more.

v1   first stable version
v2   renewed locks; request + is_renew_ack; response + acquisition_lock_timeout_ms
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int8, Int16, Int32, Int64, LeaderEpoch, String, Uuid


class ShareAcknowledgeRequest(Request["ShareAcknowledgeResponse"], key=79, versions="1-2", flexible="0+"):
    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    is_renew_ack: Bool = on("2+", False)

    class AcknowledgeTopic(Struct):
        topic_id: Uuid

        class AcknowledgePartition(Struct):
            partition_index: Int32

            class AcknowledgementBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                acknowledge_types: list[Int8]

            acknowledgement_batches: list[AcknowledgementBatch]

        partitions: list[AcknowledgePartition]

    topics: list[AcknowledgeTopic]


class ShareAcknowledgeResponse(Response, key=79, versions="1-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = on("2+", 0)

    class TopicResponse(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: String | None = None

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32
                leader_epoch: LeaderEpoch

            current_leader: LeaderIdAndEpoch

        partitions: list[PartitionData]

    responses: list[TopicResponse]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = None

    node_endpoints: list[NodeEndpoint]
