"""Records of `__remote_log_metadata`: which segments were copied to remote storage.

A record's value starts with three unsigned varints (a frame version, which is 1, key, version) and then holds one of
these.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Bool, Bytes, Int8, Int32, Int64, LeaderEpoch, String, Uuid


class RemoteLogSegmentMetadataRecord(Data, key=0, versions="0", flexible="0+"):
    """A segment is being copied."""

    class RemoteLogSegmentIdEntry(Struct):
        class TopicIdPartitionEntry(Struct):
            name: String
            id: Uuid
            partition: Int32

        topic_id_partition: TopicIdPartitionEntry
        id: Uuid

    remote_log_segment_id: RemoteLogSegmentIdEntry
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64

    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: LeaderEpoch
        offset: Int64

    segment_leader_epochs: list[SegmentLeaderEpochEntry]
    segment_size_in_bytes: Int32
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8
    txn_index_empty: Bool = on("0+", False, tag=0)


class RemoteLogSegmentMetadataUpdateRecord(Data, key=1, versions="0", flexible="0+"):
    """A segment's state changed."""

    class RemoteLogSegmentIdEntry(Struct):
        class TopicIdPartitionEntry(Struct):
            name: String
            id: Uuid
            partition: Int32

        topic_id_partition: TopicIdPartitionEntry
        id: Uuid

    remote_log_segment_id: RemoteLogSegmentIdEntry
    broker_id: Int32
    event_timestamp_ms: Int64
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8


class RemotePartitionDeleteMetadataRecord(Data, key=2, versions="0", flexible="0+"):
    """A partition's remote segments are being deleted."""

    class TopicIdPartitionEntry(Struct):
        name: String
        id: Uuid
        partition: Int32

    topic_id_partition: TopicIdPartitionEntry
    broker_id: Int32
    event_timestamp_ms: Int64
    remote_partition_delete_state: Int8


class RemoteLogSegmentMetadataSnapshotRecord(Data, key=3, versions="0", flexible="0+"):
    """One segment in a snapshot of this log."""

    segment_id: Uuid
    start_offset: Int64
    end_offset: Int64
    broker_id: Int32
    max_timestamp_ms: Int64
    event_timestamp_ms: Int64

    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: LeaderEpoch
        offset: Int64

    segment_leader_epochs: list[SegmentLeaderEpochEntry]
    segment_size_in_bytes: Int32
    custom_metadata: Bytes | None = None
    remote_log_segment_state: Int8
    txn_index_empty: Bool = on("0+", False, tag=0)
