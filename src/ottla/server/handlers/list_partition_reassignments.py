"""ListPartitionReassignments (key 46): partitions that are on their way to other brokers."""

from __future__ import annotations

from ottla.cluster.commands.reassign import ListMoves
from ottla.cluster.entities import PartitionState
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.portions import Portions
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


@handles(
    ListPartitionReassignmentsRequest,
    on="both",
    forwarded=True,
    portions=Portions("topics.partition_indexes", "topics.partitions", limits.ITEMS_PER_SLICE),
)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> Answer[ListPartitionReassignmentsResponse]:
    asked = None
    if request.topics is not None:
        asked = tuple((topic.name, tuple(topic.partition_indexes)) for topic in request.topics)
    return context.controller.ask(
        ListMoves(asked),
        _response,
        lambda error: ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.text, topics=[]),
    )


def _response(moving: list[tuple[str, PartitionState]]) -> ListPartitionReassignmentsResponse:
    topics: dict[str, _Topic] = {}
    for name, partition in moving:
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = _Topic(name=name, partitions=[])
        topic.partitions.append(
            _Topic.OngoingPartitionReassignment(
                partition_index=partition.index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE, error_message=None, topics=list(topics.values())
    )
