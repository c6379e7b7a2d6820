"""AlterReplicaLogDirs (key 34): move replicas of this broker to other data directories of its own.

The answer is sent when the moves have started; DescribeLogDirs shows their progress. A partition without a replica here
is refused, but the directory is remembered: a later replica of it is created there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.wire.messages.topics.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

_Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Partition = _Topic.AlterReplicaLogDirPartitionResult


def _refuse(request: AlterReplicaLogDirsRequest, error: ApiError) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            _Topic(
                topic_name=topic.name,
                partitions=[_Partition(partition_index=index, error_code=error.code) for index in topic.partitions],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _named(request: AlterReplicaLogDirsRequest) -> Iterator[str]:
    yield from (f"{topic.name} to {directory.path}" for directory in request.dirs for topic in directory.topics)


@handles(
    AlterReplicaLogDirsRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), refuse=_refuse, changes=_named),
    portions=Portions("dirs.topics.partitions", "results.partitions", limits.ITEMS_PER_SLICE),
)
def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    wanted = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    replication = context.replication
    results: dict[str, list[_Partition]] = {}
    for name, path in wanted.items():
        code = ErrorCode.REPLICA_NOT_AVAILABLE if replication is None else replication.log_dirs.move(name, path)
        results.setdefault(name.topic, []).append(_Partition(partition_index=name.partition, error_code=code))
    return AlterReplicaLogDirsResponse(
        results=[_Topic(topic_name=topic, partitions=partitions) for topic, partitions in results.items()]
    )
