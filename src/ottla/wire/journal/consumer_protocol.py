"""What classic consumers put into the opaque bytes of JoinGroup and SyncGroup.

Each blob starts with its version as an int16. Versions above ours are read as our highest; what follows the known
fields is ignored.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Bytes, Int32, String


class ConsumerProtocolSubscription(Data, versions="0-3"):
    """What a member wants, and what it owns.

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
    """What a member gets."""

    class TopicPartition(Struct):
        topic: String
        partitions: list[Int32]

    assigned_partitions: list[TopicPartition]
    user_data: Bytes | None = None
