"""ShareGroupDescribe (key 77): state, members and assignments of share groups.

v1   first stable version
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int16, Int32, String, Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class Assignment(Struct):
    topic_partitions: list[TopicPartitions]


class ShareGroupDescribeRequest(Request["ShareGroupDescribeResponse"], key=77, versions="1", flexible="0+"):
    group_ids: list[String]
    include_authorized_operations: Bool


class ShareGroupDescribeResponse(Response, key=77, versions="1", flexible="0+"):
    throttle_time_ms: Int32 = 0

    class DescribedGroup(Struct):
        error_code: Int16
        error_message: String | None = None
        group_id: String
        group_state: String
        group_epoch: Int32
        assignment_epoch: Int32
        assignor_name: String

        class Member(Struct):
            member_id: String
            rack_id: String | None = None
            member_epoch: Int32
            client_id: String
            client_host: String
            subscribed_topic_names: list[String]
            assignment: Assignment

        members: list[Member]
        authorized_operations: Int32 = -0x80000000

    groups: list[DescribedGroup]
