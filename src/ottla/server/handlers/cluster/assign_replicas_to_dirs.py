"""AssignReplicasToDirs (key 73): a broker reports in which directory each replica lies (KIP-858)."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.assign_directories import AssignReplicasToDirs, Placement
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

_Directory = AssignReplicasToDirsResponse.DirectoryData


def _refuse(_: AssignReplicasToDirsRequest, error: ApiError) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=error.code, directories=[])


@handles(
    AssignReplicasToDirsRequest,
    needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)),
    on="controller",
    portions=Portions(
        "directories.topics.partitions", "directories.topics.partitions", limits.METADATA_RECORDS_PER_SLICE
    ),
    refuse=_refuse,
)
def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, context: Context
) -> Decided[AssignReplicasToDirsResponse]:
    placements = tuple(
        Placement(directory.id, topic.topic_id, each.partition_index)
        for directory in request.directories
        for topic in directory.topics
        for each in topic.partitions
    )

    def respond(errors: list[ErrorCode]) -> AssignReplicasToDirsResponse:
        waiting = iter(errors)
        directories = [
            _Directory(id=directory.id, topics=[_topic(topic, waiting) for topic in directory.topics])
            for directory in request.directories
        ]
        return AssignReplicasToDirsResponse(error_code=ErrorCode.NONE, directories=directories)

    return context.member.controller.ask(
        AssignReplicasToDirs(request.broker_id, request.broker_epoch, placements), respond
    )


def _topic(
    asked: AssignReplicasToDirsRequest.DirectoryData.TopicData, errors: Iterator[ErrorCode]
) -> _Directory.TopicData:
    return _Directory.TopicData(
        topic_id=asked.topic_id,
        partitions=[
            _Directory.TopicData.PartitionData(partition_index=each.partition_index, error_code=next(errors))
            for each in asked.partitions
        ],
    )
