"""ShareGroupHeartbeat (key 76): a member of a share group (KIP-932) joins and learns its assignment.

v1   first stable version
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, String, Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ShareGroupHeartbeatRequest(Request["ShareGroupHeartbeatResponse"], key=76, versions="1", flexible="0+"):
    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: String | None = None
    subscribed_topic_names: list[String] | None = None


class ShareGroupHeartbeatResponse(Response, key=76, versions="1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32

    class Assignment(Struct):
        topic_partitions: list[TopicPartitions]

    assignment: Assignment | None = None
