"""Records of `__consumer_offsets`: share groups (KIP-932).

A record's key starts with its type as an int16 (`Key.key`), its value with its version as an int16.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Int8, Int32, Int64, String, Uuid


class ShareGroupMemberMetadataKey(Data, key=10, versions="0"):
    """A member of a group."""

    group_id: String
    member_id: String


class ShareGroupMemberMetadataValue(Data, key=10, versions="0", flexible="0+"):
    """The member's own description of itself."""

    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]


class ShareGroupMetadataKey(Data, key=11, versions="0"):
    """A share group, by id."""

    group_id: String


class ShareGroupMetadataValue(Data, key=11, versions="0", flexible="0+"):
    """The group's epoch."""

    epoch: Int32
    metadata_hash: Int64


class ShareGroupTargetAssignmentMetadataKey(Data, key=12, versions="0"):
    """The target assignment of a group."""

    group_id: String


class ShareGroupTargetAssignmentMetadataValue(Data, key=12, versions="0", flexible="0+"):
    """The group epoch the target was computed for."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = on("0+", 0, tag=0)


class ShareGroupTargetAssignmentMemberKey(Data, key=13, versions="0"):
    """A member in the target assignment."""

    group_id: String
    member_id: String


class ShareGroupTargetAssignmentMemberValue(Data, key=13, versions="0", flexible="0+"):
    """The partitions that the member shall own."""

    class TopicPartition(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    topic_partitions: list[TopicPartition]


class ShareGroupCurrentMemberAssignmentKey(Data, key=14, versions="0"):
    """A member in the current assignment."""

    group_id: String
    member_id: String


class ShareGroupCurrentMemberAssignmentValue(Data, key=14, versions="0", flexible="0+"):
    """The partitions that the member owns now, and those it is giving back."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    assigned_partitions: list[TopicPartitions]


class ShareGroupStatePartitionMetadataKey(Data, key=15, versions="0"):
    """The share partitions of a group."""

    group_id: String


class ShareGroupStatePartitionMetadataValue(Data, key=15, versions="0", flexible="0+"):
    """The share partitions that are being initialized, are initialized, or are being deleted."""

    class TopicPartitionsInfo(Struct):
        topic_id: Uuid
        topic_name: String
        partitions: list[Int32]

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]

    class TopicInfo(Struct):
        topic_id: Uuid
        topic_name: String

    deleting_topics: list[TopicInfo]
