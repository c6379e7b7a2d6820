"""DescribeQuorum (key 55): the leader of the metadata quorum and the progress of the replicas, which only the leader
knows.

v1 the time of the voters' last fetch   v2 directory ids and the listeners of the controllers

A controller that is asked on its own listener and does not lead answers with that error, the voters, and whether it is
in doubt (ADR 0022).
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model.errors import ErrorCode
from ottla.model.ids import FIRST_LEADER_EPOCH
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft.replica_progress import ReplicaView
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.wire.messages.quorum.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState

TopicAnswer = DescribeQuorumResponse.TopicData
PartitionAnswer = TopicAnswer.PartitionData


@handles(
    DescribeQuorumRequest,
    needs=Needs((on_cluster(AclOperation.DESCRIBE),), explained=True),
    on="both",
    forwarded=True,
    few=True,
)
def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(CLUSTER_METADATA_TOPIC, [0])]:
        # There is only one quorum: for any other topic each partition is answered with the same error.
        return _refuse(request)
    quorum = context.member.quorum
    found = quorum.describe()
    error = ErrorCode.NONE if found is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER
    voters, observers = found if found is not None else ([], [])
    partition = PartitionAnswer(
        partition_index=0,
        error_code=error,
        error_message=error.message if error else "",
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=_states(voters),
        observers=_states(observers),
    )
    node = DescribeQuorumResponse.Node
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        topics=[TopicAnswer(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
        nodes=[
            node(
                node_id=voter.id,
                listeners=[node.Listener(name=end.name, host=end.host, port=end.port) for end in voter.endpoints],
            )
            for voter in quorum.voters.values()
        ],
        in_doubt=quorum.in_doubt,
    )


def _states(views: Sequence[ReplicaView]) -> list[ReplicaState]:
    return [
        ReplicaState(
            replica_id=view.key.id,
            replica_directory_id=view.key.directory,
            log_end_offset=view.end_offset,
            last_fetch_timestamp=view.fetched_ms,
            last_caught_up_timestamp=view.caught_up_ms,
        )
        for view in views
    ]


def _refuse(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        topics=[
            TopicAnswer(
                topic_name=topic.topic_name,
                partitions=[
                    PartitionAnswer(
                        partition_index=each.partition_index,
                        error_code=code,
                        error_message=code.message,
                        leader_id=0,
                        leader_epoch=FIRST_LEADER_EPOCH,
                        high_watermark=0,
                        current_voters=[],
                        observers=[],
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
