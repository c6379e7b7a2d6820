"""AssignReplicasToDirs (key 73): a broker tells the controller which log directory holds which replica."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import NO_BROKER_EPOCH, BrokerEpoch, Int16, Int32, Uuid


class AssignReplicasToDirsRequest(Request["AssignReplicasToDirsResponse"], key=73, versions="0", flexible="0+"):
    broker_id: Int32
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH

    class DirectoryData(Struct):
        id: Uuid

        class TopicData(Struct):
            topic_id: Uuid

            class PartitionData(Struct):
                partition_index: Int32

            partitions: list[PartitionData]

        topics: list[TopicData]

    directories: list[DirectoryData]


class AssignReplicasToDirsResponse(Response, key=73, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16

    class DirectoryData(Struct):
        id: Uuid

        class TopicData(Struct):
            topic_id: Uuid

            class PartitionData(Struct):
                partition_index: Int32
                error_code: Int16

            partitions: list[PartitionData]

        topics: list[TopicData]

    directories: list[DirectoryData]
