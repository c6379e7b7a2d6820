"""DescribeQuorum (key 55): who leads the metadata journal and how far its voters are.

v1 when the voters were last heard of   v2 directory ids and the listeners of the controllers
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState

TopicAnswer = DescribeQuorumResponse.TopicData
PartitionAnswer = TopicAnswer.PartitionData


@handles(DescribeQuorumRequest, on="both", forwarded=True)
def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(CLUSTER_METADATA_TOPIC, [0])]:
        # There is one quorum: any other question is answered, partition by partition, with the same error.
        return _refuse(request)
    host = context.metadata
    now_ms = context.now_ms()
    me = ReplicaState(
        replica_id=context.node_id,
        log_end_offset=host.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = PartitionAnswer(
        partition_index=0,
        error_code=ErrorCode.NONE,
        leader_id=context.node_id,
        leader_epoch=host.epoch,
        high_watermark=host.end_offset,
        current_voters=[me],
        observers=[],
    )
    node = DescribeQuorumResponse.Node
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        topics=[TopicAnswer(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
        nodes=[
            node(
                node_id=controller.id,
                listeners=[node.Listener(name=end.name, host=end.host, port=end.port) for end in controller.endpoints],
            )
            for controller in host.state.controllers.values()
        ],
    )


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
                        leader_epoch=0,
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
