"""ShareFetch (key 78): acquire records of share partitions, acknowledging earlier ones on the way.

v1   first stable version
v2   batch-optimised or record-limited acquiring, renewed locks; request + share_acquire_mode, is_renew_ack
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int8, Int16, Int32, Int64, LeaderEpoch, Records, String, Uuid


class ShareFetchRequest(Request["ShareFetchResponse"], key=78, versions="1-2", flexible="0+"):
    group_id: String | None = None
    member_id: String | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 0x7FFFFFFF
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Int8 = on("2+", 0)
    is_renew_ack: Bool = on("2+", False)

    class FetchTopic(Struct):
        topic_id: Uuid

        class FetchPartition(Struct):
            partition_index: Int32

            class AcknowledgementBatch(Struct):
                first_offset: Int64
                last_offset: Int64
                acknowledge_types: list[Int8]

            acknowledgement_batches: list[AcknowledgementBatch]

        partitions: list[FetchPartition]

    topics: list[FetchTopic]

    class ForgottenTopic(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    forgotten_topics_data: list[ForgottenTopic]


class ShareFetchResponse(Response, key=78, versions="1-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32

    class ShareFetchableTopicResponse(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            error_message: String | None = None
            acknowledge_error_code: Int16
            acknowledge_error_message: String | None = None

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32
                leader_epoch: LeaderEpoch

            current_leader: LeaderIdAndEpoch
            records: Records

            class AcquiredRecords(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_count: Int16

            acquired_records: list[AcquiredRecords]

        partitions: list[PartitionData]

    responses: list[ShareFetchableTopicResponse]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = None

    node_endpoints: list[NodeEndpoint]
