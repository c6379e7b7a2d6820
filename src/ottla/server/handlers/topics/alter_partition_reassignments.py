"""AlterPartitionReassignments (key 45): move partitions to other brokers, or cancel such moves.

v1 the client may demand that the replication factor stays the same
"""

from __future__ import annotations

from ottla.cluster.commands.reassign import Moved, Reassign, ReplicaAssignment
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.changes.names import topics_named
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


def _refuse(request: AlterPartitionReassignmentsRequest, error: ApiError) -> AlterPartitionReassignmentsResponse:
    """Refuse the whole request; as with Kafka, each partition repeats the error."""
    responses = [
        _Topic(
            name=topic.name,
            partitions=[
                _Topic.ReassignablePartitionResponse(
                    partition_index=each.partition_index, error_code=error.code, error_message=error.text
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.text, responses=responses)


@handles(
    AlterPartitionReassignmentsRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), changes=topics_named),
    on="both",
    forwarded=True,
    portions=Portions("topics.partitions", "responses.partitions", limits.ITEMS_PER_SLICE),
    refuse=_refuse,
)
def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> Decided[AlterPartitionReassignmentsResponse]:
    moves = tuple(
        ReplicaAssignment(topic.name, each.partition_index, None if each.replicas is None else tuple(each.replicas))
        for topic in request.topics
        for each in topic.partitions
    )

    def respond(outcomes: list[Moved]) -> AlterPartitionReassignmentsResponse:
        waiting = iter(outcomes)
        topics = [
            _Topic(name=topic.name, partitions=[_answer(next(waiting)) for _ in topic.partitions])
            for topic in request.topics
        ]
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NONE,
            error_message=None,
            allow_replication_factor_change=request.allow_replication_factor_change,
            responses=topics,
        )

    return context.member.controller.ask(Reassign(moves, request.allow_replication_factor_change), respond)


def _answer(outcome: Moved) -> _Topic.ReassignablePartitionResponse:
    error = outcome.error
    return _Topic.ReassignablePartitionResponse(
        partition_index=outcome.partition,
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
    )
