"""CreatePartitions (key 37): add partitions to topics."""

from __future__ import annotations

from ottla.cluster.commands.create_partitions import CreatePartitions, Grown, Growth
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.security.quotas.mutations import throttle_ms
from ottla.server.api.changes.names import topics_named
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_topic
from ottla.server.api.portions import Portions
from ottla.server.api.topic_policy import is_exempt
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

_FIRST_STRICT = 3  # the first version that is refused by a quota, not only throttled


def _weight(topic: CreatePartitionsRequest.Topic) -> int:
    return max(topic.count, 1)


def _refuse(request: CreatePartitionsRequest, error: ApiError) -> CreatePartitionsResponse:
    return _response([Grown(topic.name, error) for topic in request.topics])


@handles(
    CreatePartitionsRequest,
    needs=Needs(
        items=CheckedItems(on_topic(AclOperation.ALTER), "topics", "results", order="first"), changes=topics_named
    ),
    on="both",
    forwarded=True,
    portions=Portions("topics", "results", limits.PARTITIONS_CREATED_PER_SLICE, weigh=_weight),
    refuse=_refuse,
)
def create_partitions(request: CreatePartitionsRequest, context: Context) -> Decided[CreatePartitionsResponse]:
    quota = context.quotas.mutating(context, strict=context.request_version >= _FIRST_STRICT)
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
        quota,
        is_exempt(context),
    )
    return context.member.controller.ask(command, lambda outcomes: _response(outcomes, throttle_ms(quota)))


def _response(outcomes: list[Grown], throttle_ms: int = 0) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time_ms=throttle_ms,
        results=[
            CreatePartitionsResponse.TopicResult(
                name=name,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else None,
            )
            for name, error in outcomes
        ],
    )
