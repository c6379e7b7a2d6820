"""CreatePartitions (key 37): add partitions to topics."""

from __future__ import annotations

from ottla.cluster.commands.create_partitions import CreatePartitions, Grown, Growth
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse


def _weight(topic: CreatePartitionsRequest.Topic) -> int:
    return max(topic.count, 1)


def _refuse(request: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    return _response([Grown(topic.name, error) for topic in request.topics])


@handles(
    CreatePartitionsRequest,
    on="both",
    forwarded=True,
    portions=Portions("topics", "results", limits.PARTITIONS_CREATED_PER_SLICE, weigh=_weight),
    refuse=_refuse,
)
def create_partitions(request: CreatePartitionsRequest, context: Context) -> Decided[CreatePartitionsResponse]:
    command = CreatePartitions(
        tuple(
            Growth(
                topic.name,
                topic.count,
                None if topic.assignments is None else tuple(tuple(each.broker_ids) for each in topic.assignments),
            )
            for topic in request.topics
        ),
        request.validate_only,
    )
    return context.member.controller.ask(command, _response)


def _response(outcomes: list[Grown]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.TopicResult(
                name=name,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else None,
            )
            for name, error in outcomes
        ]
    )
