"""Records of `__consumer_offsets`: streams groups (KIP-1071).

A record's key starts with its type as an int16 (`Key.key`), its value with its version as an int16.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Int8, Int16, Int32, Int64, String, UInt16


class StreamsGroupMetadataKey(Data, key=17, versions="0"):
    """A streams group, by id."""

    group_id: String


class StreamsGroupMetadataValue(Data, key=17, versions="0", flexible="0+"):
    """The group's epoch."""

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = on("0+", -1, tag=0)

    class LastAssignmentConfig(Struct):
        key: String
        value: String

    last_assignment_configs: list[LastAssignmentConfig] | None = on("0+", [], tag=1)


class StreamsGroupMemberMetadataKey(Data, key=19, versions="0"):
    """A member of a group."""

    group_id: String
    member_id: String


class StreamsGroupMemberMetadataValue(Data, key=19, versions="0", flexible="0+"):
    """The member's own description of itself."""

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: String

    class Endpoint(Struct):
        host: String
        port: UInt16

    user_endpoint: Endpoint | None = None

    class KeyValue(Struct):
        key: String
        value: String

    client_tags: list[KeyValue]


class StreamsGroupTargetAssignmentMetadataKey(Data, key=20, versions="0"):
    """The target assignment of a group."""

    group_id: String


class StreamsGroupTargetAssignmentMetadataValue(Data, key=20, versions="0", flexible="0+"):
    """The group epoch the target was computed for."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = on("0+", 0, tag=0)


class StreamsGroupTargetAssignmentMemberKey(Data, key=21, versions="0"):
    """A member in the target assignment."""

    group_id: String
    member_id: String


class StreamsGroupTargetAssignmentMemberValue(Data, key=21, versions="0", flexible="0+"):
    """The tasks that the member shall own."""

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


class StreamsGroupCurrentMemberAssignmentKey(Data, key=22, versions="0"):
    """A member in the current assignment."""

    group_id: String
    member_id: String


class StreamsGroupCurrentMemberAssignmentValue(Data, key=22, versions="0", flexible="0+"):
    """The tasks that the member owns now, and those it is giving back."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8

    class TaskIds(Struct):
        subtopology_id: String
        partitions: list[Int32]
        assignment_epochs: list[Int32] | None = on("0+", [], tag=0)

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
    active_tasks_pending_revocation: list[TaskIds]
    standby_tasks_pending_revocation: list[TaskIds]
    warmup_tasks_pending_revocation: list[TaskIds]


class StreamsGroupTopologyKey(Data, key=23, versions="0"):
    """The topology of a group."""

    group_id: String


class TopicConfig(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[TopicConfig]


class StreamsGroupTopologyValue(Data, key=23, versions="0", flexible="0+"):
    """The subtopologies of a group, with their source, sink and internal topics."""

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
