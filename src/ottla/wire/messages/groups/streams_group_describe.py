"""StreamsGroupDescribe (key 89): state, topology, members and tasks of streams groups (KIP-1071)."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int16, Int32, Int64, String, UInt16


class Endpoint(Struct):
    host: String
    port: UInt16


class TaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class TaskIds(Struct):
    subtopology_id: String
    partitions: list[Int32]


class Assignment(Struct):
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[KeyValue]


class StreamsGroupDescribeRequest(Request["StreamsGroupDescribeResponse"], key=89, versions="0", flexible="0+"):
    group_ids: list[String]
    include_authorized_operations: Bool


class StreamsGroupDescribeResponse(Response, key=89, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0

    class DescribedGroup(Struct):
        error_code: Int16
        error_message: String | None = None
        group_id: String
        group_state: String
        group_epoch: Int32
        assignment_epoch: Int32

        class Topology(Struct):
            epoch: Int32

            class Subtopology(Struct):
                subtopology_id: String
                source_topics: list[String]
                repartition_sink_topics: list[String]
                state_changelog_topics: list[TopicInfo]
                repartition_source_topics: list[TopicInfo]

            subtopologies: list[Subtopology] | None = None

        topology: Topology | None = None

        class Member(Struct):
            member_id: String
            member_epoch: Int32
            instance_id: String | None = None
            rack_id: String | None = None
            client_id: String
            client_host: String
            topology_epoch: Int32
            process_id: String
            user_endpoint: Endpoint | None = None
            client_tags: list[KeyValue]
            task_offsets: list[TaskOffset]
            task_end_offsets: list[TaskOffset]
            assignment: Assignment
            target_assignment: Assignment
            is_classic: Bool

        members: list[Member]
        authorized_operations: Int32 = -0x80000000

    groups: list[DescribedGroup]
