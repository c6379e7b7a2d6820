"""ConsumerGroupHeartbeat (key 68): a member of a consumer group (KIP-848) joins and learns its assignment.

v1   regular expressions; the member chooses its own id (KIP-1082); request + subscribed_topic_regex
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int16, Int32, String, Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ConsumerGroupHeartbeatRequest(Request["ConsumerGroupHeartbeatResponse"], key=68, versions="0-1", flexible="0+"):
    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: String | None = on("1+", None)
    server_assignor: String | None = None

    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    topic_partitions: list[TopicPartitions] | None = None


class ConsumerGroupHeartbeatResponse(Response, key=68, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32

    class Assignment(Struct):
        topic_partitions: list[TopicPartitions]

    assignment: Assignment | None = None
