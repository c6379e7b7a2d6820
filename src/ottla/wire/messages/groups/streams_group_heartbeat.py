"""StreamsGroupHeartbeat (key 88): a Streams member joins its group, reports its tasks and learns new ones."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int8, Int16, Int32, Int64, String, UInt16


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[KeyValue]


class TopicPartition(Struct):
    topic: String
    partitions: list[Int32]


class Endpoint(Struct):
    host: String
    port: UInt16


class StreamsGroupHeartbeatRequest(Request["StreamsGroupHeartbeatResponse"], key=88, versions="0", flexible="0+"):
    group_id: String
    member_id: String
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1

    class Topology(Struct):
        epoch: Int32

        class Subtopology(Struct):
            subtopology_id: String
            source_topics: list[String]
            source_topic_regex: list[String]
            state_changelog_topics: list[TopicInfo]
            repartition_sink_topics: list[String]
            repartition_source_topics: list[TopicInfo]

            class CopartitionGroup(Struct):
                source_topics: list[Int16]
                source_topic_regex: list[Int16]
                repartition_source_topics: list[Int16]

            copartition_groups: list[CopartitionGroup]

        subtopologies: list[Subtopology]

    topology: Topology | None = None

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]

    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: String | None = None

    class Endpoint(Struct):
        host: String
        port: UInt16

    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None

    class TaskOffset(Struct):
        subtopology_id: String
        partition: Int32
        offset: Int64

    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: Bool = False


class StreamsGroupHeartbeatResponse(Response, key=88, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag: Int32
    task_offset_interval_ms: Int32

    class Status(Struct):
        status_code: Int8
        status_detail: String

    status: list[Status] | None

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]

    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: Int32

    class EndpointToPartitions(Struct):
        user_endpoint: Endpoint
        active_partitions: list[TopicPartition]
        standby_partitions: list[TopicPartition]

    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
