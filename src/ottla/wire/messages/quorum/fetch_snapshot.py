"""FetchSnapshot (key 59): read a piece of a metadata snapshot.

v1   directory ids (KIP-853); request + replica_directory_id; response + node_endpoints
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, Int16, Int32, Int64, LeaderEpoch, Records, String, UInt16, Uuid


class FetchSnapshotRequest(Request["FetchSnapshotResponse"], key=59, versions="0-1", flexible="0+"):
    cluster_id: String | None = on("0+", None, tag=0)
    replica_id: Int32 = -1
    max_bytes: Int32 = 0x7FFFFFFF

    class TopicSnapshot(Struct):
        name: String

        class PartitionSnapshot(Struct):
            partition: Int32
            current_leader_epoch: LeaderEpoch

            class SnapshotId(Struct):
                end_offset: Int64
                epoch: LeaderEpoch

            snapshot_id: SnapshotId
            position: Int64
            replica_directory_id: Uuid = on("1+", NO_ID, tag=0)

        partitions: list[PartitionSnapshot]

    topics: list[TopicSnapshot]


class FetchSnapshotResponse(Response, key=59, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16

    class TopicSnapshot(Struct):
        name: String

        class PartitionSnapshot(Struct):
            index: Int32
            error_code: Int16

            class SnapshotId(Struct):
                end_offset: Int64
                epoch: LeaderEpoch

            snapshot_id: SnapshotId

            class LeaderIdAndEpoch(Struct):
                leader_id: Int32 = 0
                leader_epoch: LeaderEpoch = LeaderEpoch(0)

            current_leader: LeaderIdAndEpoch = on("0+", LeaderIdAndEpoch, tag=0)
            size: Int64
            position: Int64
            unaligned_records: Records

        partitions: list[PartitionSnapshot]

    topics: list[TopicSnapshot]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: UInt16

    node_endpoints: list[NodeEndpoint] = on("1+", [], tag=0)
