"""AlterReplicaLogDirs (key 34): move replicas of this broker to another of its log directories.

v1   throttling happens after the answer
v2   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, String


class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"], key=34, versions="1-2", flexible="2+"):
    class AlterReplicaLogDir(Struct):
        path: String

        class AlterReplicaLogDirTopic(Struct):
            name: String
            partitions: list[Int32]

        topics: list[AlterReplicaLogDirTopic]

    dirs: list[AlterReplicaLogDir]


class AlterReplicaLogDirsResponse(Response, key=34, versions="1-2", flexible="2+"):
    throttle_time_ms: Int32 = 0

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: String

        class AlterReplicaLogDirPartitionResult(Struct):
            partition_index: Int32
            error_code: Int16

        partitions: list[AlterReplicaLogDirPartitionResult]

    results: list[AlterReplicaLogDirTopicResult]
