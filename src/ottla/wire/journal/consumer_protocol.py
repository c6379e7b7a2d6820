"""The content of the opaque bytes that classic consumers put into JoinGroup and SyncGroup.

Each blob starts with its version as an int16. A version above ours is read as our highest; bytes after the known fields
are ignored.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Bytes, Int32, String


class ConsumerProtocolSubscription(Data, versions="0-3"):
    """The topics that a member subscribes to, and the partitions it owns.

    v1   + owned_partitions
    v2   + generation_id
    v3   + rack_id
    """

    topics: list[String]
    user_data: Bytes | None = None

    class TopicPartition(Struct):
        topic: String
        partitions: list[Int32]

    owned_partitions: list[TopicPartition] = on("1+", [])
    generation_id: Int32 = on("2+", -1)
    rack_id: String | None = on("3+", None)


class ConsumerProtocolAssignment(Data, versions="0-3"):
    """The partitions that a member is assigned."""

    class TopicPartition(Struct):
        topic: String
        partitions: list[Int32]

    assigned_partitions: list[TopicPartition]
    user_data: Bytes | None = None
