"""AlterPartition (key 56): a partition's leader proposes another set of in-sync replicas.

v2 without broker epochs   v3 with them (KIP-903)
"""

from __future__ import annotations

from itertools import groupby

from ottla.cluster.commands.alter_partition import AlterPartition, IsrChange, IsrMember, IsrOutcome
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_LEADER_EPOCH, FIRST_PARTITION_EPOCH
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.alter_partition import AlterPartitionRequest, AlterPartitionResponse

_Asked = AlterPartitionRequest.TopicData.PartitionData
_Topic = AlterPartitionResponse.TopicData
_FIRST_WITH_EPOCHS = AlterPartitionRequest.TopicData.PartitionData.since("new_isr_with_epochs")


def _refuse(_: AlterPartitionRequest, error: ApiError) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error.code, topics=[])


@handles(
    AlterPartitionRequest,
    needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)),
    on="controller",
    portions=Portions("topics.partitions", "topics.partitions", limits.METADATA_RECORDS_PER_SLICE),
    refuse=_refuse,
)
def alter_partition(request: AlterPartitionRequest, context: Context) -> Decided[AlterPartitionResponse]:
    changes = tuple(
        IsrChange(
            topic.topic_id,
            each.partition_index,
            each.leader_epoch,
            each.partition_epoch,
            _members(each, context.request_version),
            each.leader_recovery_state,
        )
        for topic in request.topics
        for each in topic.partitions
    )
    return context.member.controller.ask(AlterPartition(request.broker_id, request.broker_epoch, changes), _response)


def _members(asked: _Asked, version: int) -> tuple[IsrMember, ...]:
    if version < _FIRST_WITH_EPOCHS:
        return tuple(map(IsrMember, asked.new_isr))
    return tuple(IsrMember(each.broker_id, each.broker_epoch) for each in asked.new_isr_with_epochs)


def _response(outcomes: list[IsrOutcome]) -> AlterPartitionResponse:
    topics = [
        _Topic(topic_id=topic_id, partitions=[_partition(each) for each in group])
        for topic_id, group in groupby(outcomes, key=lambda outcome: outcome.topic_id)
    ]
    return AlterPartitionResponse(error_code=ErrorCode.NONE, topics=topics)


def _partition(outcome: IsrOutcome) -> _Topic.PartitionData:
    state = outcome.state
    if state is None:
        return _Topic.PartitionData(
            partition_index=outcome.index,
            error_code=outcome.error,
            leader_id=0,
            leader_epoch=FIRST_LEADER_EPOCH,
            isr=[],
            partition_epoch=FIRST_PARTITION_EPOCH,
        )
    return _Topic.PartitionData(
        partition_index=outcome.index,
        error_code=ErrorCode.NONE,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=state.recovering,
        partition_epoch=state.partition_epoch,
    )
