"""TxnOffsetCommit (key 28): store a group's offsets as part of a transaction.

v1   throttling happens after the answer
v2   request + committed_leader_epoch
v3   group membership is checked (KIP-447); flexible; request + generation_id, member_id, group_instance_id
v4   TRANSACTION_ABORTABLE possible (KIP-890)
v5   the group joins the transaction implicitly (KIP-890)
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_LEADER_EPOCH, Int16, Int32, Int64, LeaderEpoch, ProducerEpoch, ProducerId, String


class TxnOffsetCommitRequest(Request["TxnOffsetCommitResponse"], key=28, versions="0-5", flexible="3+"):
    transactional_id: String
    group_id: String
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    generation_id: Int32 = on("3+", -1)
    member_id: String = on("3+", "")
    group_instance_id: String | None = on("3+", None)

    class Topic(Struct):
        name: String

        class Partition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: LeaderEpoch = on("2+", NO_LEADER_EPOCH)
            committed_metadata: String | None

        partitions: list[Partition]

    topics: list[Topic]


class TxnOffsetCommitResponse(Response, key=28, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0

    class Topic(Struct):
        name: String

        class Partition(Struct):
            partition_index: Int32
            error_code: Int16

        partitions: list[Partition]

    topics: list[Topic]
