"""ListPartitionReassignments (key 46): list the partitions that are being reassigned."""

from __future__ import annotations

from collections.abc import Generator

from ottla.cluster.commands.reassign import ListMoves
from ottla.cluster.entities import PartitionState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Large, Later
from ottla.server.loop.slices import Slices
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_Response = ListPartitionReassignmentsResponse
_Topic = _Response.OngoingTopicReassignment


def _refuse(request: ListPartitionReassignmentsRequest, error: ApiError) -> _Response:
    """Refuse the whole request; as with Kafka, the partitions that it names are in the response, without replicas."""
    topics = [
        _Topic(
            name=topic.name,
            partitions=[
                _Topic.OngoingPartitionReassignment(
                    partition_index=index, replicas=[], adding_replicas=[], removing_replicas=[]
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return _Response(error_code=error.code, error_message=error.text, topics=topics)


@handles(
    ListPartitionReassignmentsRequest,
    needs=Needs((on_cluster(AclOperation.DESCRIBE),)),
    on="both",
    forwarded=True,
    portions=Portions("topics.partition_indexes", "topics.partitions", limits.ITEMS_PER_SLICE),
    refuse=_refuse,
)
def list_partition_reassignments(request: ListPartitionReassignmentsRequest, context: Context) -> Decided[_Response]:
    asked = None
    if request.topics is not None:
        asked = tuple((topic.name, tuple(topic.partition_indexes)) for topic in request.topics)
    return _answer(context.member.controller.submit(ListMoves(asked)), context.runtime.slices)


async def _answer(
    reply: Later[list[tuple[str, PartitionState]] | ApiError], slices: Slices
) -> _Response | ApiError | Large[_Response]:
    """Build the response in slices, because there may be very many reassignments."""
    moving = await reply
    if isinstance(moving, ApiError):
        return moving
    response = await slices.finish(_responding(moving))
    return Large(response) if len(moving) > limits.METADATA_RECORDS_PER_SLICE else response


def _responding(moving: list[tuple[str, PartitionState]]) -> Generator[None, None, _Response]:
    topics: dict[str, _Topic] = {}
    for number, (name, partition) in enumerate(moving, start=1):
        if number % limits.METADATA_RECORDS_PER_SLICE == 0:
            yield
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
    return _Response(error_code=ErrorCode.NONE, error_message=None, topics=list(topics.values()))
