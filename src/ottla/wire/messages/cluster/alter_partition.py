"""AlterPartition (key 56): a partition leader asks the controller to change the in-sync replicas.

v2   topics by id
v3   in-sync replicas with broker epochs (KIP-903); request + new_isr_with_epochs - new_isr
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_BROKER_EPOCH, BrokerEpoch, Int8, Int16, Int32, LeaderEpoch, PartitionEpoch, Uuid


class AlterPartitionRequest(Request["AlterPartitionResponse"], key=56, versions="2-3", flexible="0+"):
    broker_id: Int32
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH

    class TopicData(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition_index: Int32
            leader_epoch: LeaderEpoch
            new_isr: list[Int32] = on("0-2", [])

            class BrokerState(Struct):
                broker_id: Int32
                broker_epoch: BrokerEpoch = NO_BROKER_EPOCH

            new_isr_with_epochs: list[BrokerState] = on("3+", [])
            leader_recovery_state: Int8 = 0
            partition_epoch: PartitionEpoch

        partitions: list[PartitionData]

    topics: list[TopicData]


class AlterPartitionResponse(Response, key=56, versions="2-3", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16

    class TopicData(Struct):
        topic_id: Uuid

        class PartitionData(Struct):
            partition_index: Int32
            error_code: Int16
            leader_id: Int32
            leader_epoch: LeaderEpoch
            isr: list[Int32]
            leader_recovery_state: Int8 = 0
            partition_epoch: PartitionEpoch

        partitions: list[PartitionData]

    topics: list[TopicData]
