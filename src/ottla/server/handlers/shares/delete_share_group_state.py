"""DeleteShareGroupState (key 86): forget the stored state of share partitions."""

from __future__ import annotations

from typing import Any

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.server.shares.coordinators import ask_partitions, is_askable
from ottla.shares.state.commands import DeleteState
from ottla.wire.messages.shares.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)

TopicAnswer = DeleteShareGroupStateResponse.DeleteStateResult
PartitionAnswer = TopicAnswer.PartitionResult


@handles(
    DeleteShareGroupStateRequest, portions=Portions("topics.partitions", "results.partitions", limits.ITEMS_PER_SLICE)
)
def delete_share_group_state(
    request: DeleteShareGroupStateRequest, context: Context
) -> Answer[DeleteShareGroupStateResponse]:
    if not is_askable(request.group_id, request.topics):
        return DeleteShareGroupStateResponse(results=[])

    def command(topic_id: bytes, each: Any) -> Any:
        return DeleteState(request.group_id, topic_id, each.partition)

    answers = ask_partitions(context, request, command, _respond, _refuse, TopicAnswer)
    return answers.map(lambda topics: DeleteShareGroupStateResponse(results=topics)).soonest()


def _respond(partition: int, _: Any) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=ErrorCode.NONE)


def _refuse(partition: int, error: ApiError) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=error.code, error_message=error.text)
