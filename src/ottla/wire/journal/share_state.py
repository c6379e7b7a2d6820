"""Records of `__share_group_state`: the delivery state of records that a share group has acquired.

A record's key starts with its type as an int16 (`Key.key`), its value with its version as an int16.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Int8, Int16, Int32, Int64, LeaderEpoch, String, Uuid


class ShareSnapshotKey(Data, key=0, versions="0"):
    """Identifies the snapshot of a share partition's whole state."""

    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareSnapshotValue(Data, key=0, versions="0", flexible="0+"):
    """The whole state of a share partition."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: LeaderEpoch
    start_offset: Int64
    delivery_complete_count: Int32 = on("0+", -1, tag=0)
    create_timestamp: Int64
    write_timestamp: Int64

    class StateBatch(Struct):
        first_offset: Int64
        last_offset: Int64
        delivery_state: Int8
        delivery_count: Int16

    state_batches: list[StateBatch]


class ShareUpdateKey(Data, key=1, versions="0"):
    """Identifies a change of a share partition's state since its snapshot."""

    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateValue(Data, key=1, versions="0", flexible="0+"):
    """The changes of a share partition's state."""

    snapshot_epoch: Int32
    leader_epoch: LeaderEpoch
    start_offset: Int64
    delivery_complete_count: Int32 = on("0+", -1, tag=0)

    class StateBatch(Struct):
        first_offset: Int64
        last_offset: Int64
        delivery_state: Int8
        delivery_count: Int16

    state_batches: list[StateBatch]
