"""CreateTopics (key 19): create topics, or check whether they could be created.

v3   throttling happens after the answer
v4   default partitions and replication factor (-1)
v5   flexible; response + topic_config_error_code, num_partitions, replication_factor, configs
v6   THROTTLING_QUOTA_EXCEEDED possible (KIP-599)
v7   response + topic_id
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, Bool, Int8, Int16, Int32, String, Uuid


class CreateTopicsRequest(Request["CreateTopicsResponse"], key=19, versions="2-7", flexible="5+"):
    class CreatableTopic(Struct):
        name: String
        num_partitions: Int32
        replication_factor: Int16

        class CreatableReplicaAssignment(Struct):
            partition_index: Int32
            broker_ids: list[Int32]

        assignments: list[CreatableReplicaAssignment]

        class CreatableTopicConfig(Struct):
            name: String
            value: String | None

        configs: list[CreatableTopicConfig]

    topics: list[CreatableTopic]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreateTopicsResponse(Response, key=19, versions="2-7", flexible="5+"):
    throttle_time_ms: Int32 = 0

    class CreatableTopicResult(Struct):
        name: String
        topic_id: Uuid = on("7+", NO_ID)
        error_code: Int16
        error_message: String | None
        topic_config_error_code: Int16 = on("5+", 0, tag=0)
        num_partitions: Int32 = on("5+", -1)
        replication_factor: Int16 = on("5+", -1)

        class CreatableTopicConfigs(Struct):
            name: String
            value: String | None
            read_only: Bool
            config_source: Int8 = -1
            is_sensitive: Bool

        configs: list[CreatableTopicConfigs] | None = on("5+", [])

    topics: list[CreatableTopicResult]
