"""Records of `__consumer_offsets`: committed offsets and classic groups. The newer kinds of group have modules of their
own.

A record's key starts with its type as an int16 (`Key.key`), its value with its version as an int16.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import NO_ID, NO_LEADER_EPOCH, Bytes, Int32, Int64, LeaderEpoch, String, Uuid


class LegacyOffsetCommitKey(Data, key=0, versions="0"):
    """Group, topic and partition of an offset (as written by very old brokers)."""

    group: String
    topic: String
    partition: Int32


class LegacyOffsetCommitValue(Data, key=0, versions="0"):
    """The committed offset (as written by very old brokers)."""

    offset: Int64
    metadata: String
    commit_timestamp: Int64


class OffsetCommitKey(Data, key=1, versions="0"):
    """Group, topic and partition of an offset."""

    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(Data, key=1, versions="0-4", flexible="4+"):
    """The committed offset of the group; a tombstone means that it was deleted.

    v1   + expire_timestamp
    v2   - expire_timestamp
    v3   + leader_epoch
    v4   flexible; + topic_id
    """

    offset: Int64
    leader_epoch: LeaderEpoch = on("3+", NO_LEADER_EPOCH)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = on("1", -1)
    topic_id: Uuid = on("4+", NO_ID, tag=0)


class GroupMetadataKey(Data, key=2, versions="0"):
    """A classic group, by id."""

    group: String


class GroupMetadataValue(Data, key=2, versions="0-4", flexible="4+"):
    """A classic group's generation, protocol and members.

    v1   + rebalance_timeout
    v2   + current_state_timestamp
    v3   + group_instance_id
    v4   flexible
    """

    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = on("2+", -1)

    class MemberMetadata(Struct):
        member_id: String
        group_instance_id: String | None = on("3+", None)
        client_id: String
        client_host: String
        rebalance_timeout: Int32 = on("1+", -1)
        session_timeout: Int32
        subscription: Bytes
        assignment: Bytes

    members: list[MemberMetadata]
