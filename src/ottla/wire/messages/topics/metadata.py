"""Metadata (key 3): the brokers, the topics, and the leaders of their partitions.

v1   no topics means none, null means all; request null topics; response + rack, controller_id, is_internal
v2   response + cluster_id
v3   response + throttle_time_ms
v4   request + allow_auto_topic_creation
v5   response + offline_replicas
v6   throttling happens after the answer
v7   response + leader_epoch
v8   authorized operations (KIP-430); request + include_cluster_authorized_operations,
     include_topic_authorized_operations; response + topic_authorized_operations,
     cluster_authorized_operations
v9   flexible
v10  request + topic_id null name; response + topic_id
v11  request - include_cluster_authorized_operations; response - cluster_authorized_operations
v12  asking by topic id works (KIP-516); response null name
v13  top-level error, REBOOTSTRAP_REQUIRED possible (KIP-1102); response + error_code
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, NO_LEADER_EPOCH, Bool, Int16, Int32, LeaderEpoch, String, Uuid


class MetadataRequest(Request["MetadataResponse"], key=3, versions="0-13", flexible="9+"):
    class Topic(Struct):
        topic_id: Uuid = on("10+", NO_ID)
        name: String | None = on("0+", "", nullable="10+")

    topics: list[Topic] | None = on("0+", [], nullable="1+")
    allow_auto_topic_creation: Bool = on("4+", True)
    include_cluster_authorized_operations: Bool = on("8-10", False)
    include_topic_authorized_operations: Bool = on("8+", False)


class MetadataResponse(Response, key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: Int32 = on("3+", 0)

    class Broker(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = on("1+", None)

    brokers: list[Broker]
    cluster_id: String | None = on("2+", None)
    controller_id: Int32 = on("1+", -1)

    class Topic(Struct):
        error_code: Int16
        name: String | None = on("0+", "", nullable="12+")
        topic_id: Uuid = on("10+", NO_ID)
        is_internal: Bool = on("1+", False)

        class Partition(Struct):
            error_code: Int16
            partition_index: Int32
            leader_id: Int32
            leader_epoch: LeaderEpoch = on("7+", NO_LEADER_EPOCH)
            replica_nodes: list[Int32]
            isr_nodes: list[Int32]
            offline_replicas: list[Int32] = on("5+", [])

        partitions: list[Partition]
        topic_authorized_operations: Int32 = on("8+", -0x80000000)

    topics: list[Topic]
    cluster_authorized_operations: Int32 = on("8-10", -0x80000000)
    error_code: Int16 = on("13+", 0)
