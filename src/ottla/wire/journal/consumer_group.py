"""Records of `__consumer_offsets`: consumer groups (KIP-848).

A record's key starts with its type as an int16 (`Key.key`), its value with its version as an int16.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Bytes, Int8, Int32, Int64, String, Uuid


class ConsumerGroupMetadataKey(Data, key=3, versions="0"):
    """A consumer group, by id."""

    group_id: String


class ConsumerGroupMetadataValue(Data, key=3, versions="0", flexible="0+"):
    """The group's epoch."""

    epoch: Int32
    metadata_hash: Int64 = on("0+", 0, tag=0)


class ConsumerGroupPartitionMetadataKey(Data, key=4, versions="0"):
    """The topics a group knows (no longer written; a tombstone clears it)."""

    group_id: String


class ConsumerGroupPartitionMetadataValue(Data, key=4, versions="0", flexible="0+"):
    """The topics a group knows, with their partitions."""

    class TopicMetadata(Struct):
        topic_id: Uuid
        topic_name: String
        num_partitions: Int32

        class PartitionMetadata(Struct):
            partition: Int32
            racks: list[String]

        partition_metadata: list[PartitionMetadata]

    topics: list[TopicMetadata]


class ConsumerGroupMemberMetadataKey(Data, key=5, versions="0"):
    """A member of a group."""

    group_id: String
    member_id: String


class ConsumerGroupMemberMetadataValue(Data, key=5, versions="0", flexible="0+"):
    """The member's own description of itself."""

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: Int32 = 0

        class ClassicProtocol(Struct):
            name: String
            metadata: Bytes

        supported_protocols: list[ClassicProtocol] = []

    classic_member_metadata: ClassicMemberMetadata | None = on("0+", ClassicMemberMetadata, tag=0)


class ConsumerGroupTargetAssignmentMetadataKey(Data, key=6, versions="0"):
    """The target assignment of a group."""

    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(Data, key=6, versions="0", flexible="0+"):
    """The group epoch the target was computed for."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = on("0+", 0, tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Data, key=7, versions="0"):
    """A member in the target assignment."""

    group_id: String
    member_id: String


class ConsumerGroupTargetAssignmentMemberValue(Data, key=7, versions="0", flexible="0+"):
    """The partitions that the member shall own."""

    class TopicPartition(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    topic_partitions: list[TopicPartition]


class ConsumerGroupCurrentMemberAssignmentKey(Data, key=8, versions="0"):
    """A member in the current assignment."""

    group_id: String
    member_id: String


class ConsumerGroupCurrentMemberAssignmentValue(Data, key=8, versions="0", flexible="0+"):
    """The partitions that the member owns now, and those it is giving back."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]
        assignment_epochs: list[Int32] | None = on("0+", [], tag=0)

    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


class ConsumerGroupRegularExpressionKey(Data, key=16, versions="0"):
    """A regular expression that a member subscribes to."""

    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(Data, key=16, versions="0", flexible="0+"):
    """The topics that the regular expression resolved to."""

    topics: list[String]
    version: Int64
    timestamp: Int64
