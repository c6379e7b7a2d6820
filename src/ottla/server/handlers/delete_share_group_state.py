"""DeleteShareGroupState (key 86): forget the stored state of share partitions."""

from __future__ import annotations

from typing import Any

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.shares import ask_each, is_askable
from ottla.shares.state.commands import DeleteState
from ottla.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse

TopicAnswer = DeleteShareGroupStateResponse.DeleteStateResult
PartitionAnswer = TopicAnswer.PartitionResult


@handles(DeleteShareGroupStateRequest)
def delete_share_group_state(
    request: DeleteShareGroupStateRequest, context: Context
) -> Answer[DeleteShareGroupStateResponse]:
    if not is_askable(request.group_id, request.topics):
        return DeleteShareGroupStateResponse(results=[])
    commands = {
        (topic.topic_id, each.partition): DeleteState(request.group_id, topic.topic_id, each.partition)
        for topic in request.topics
        for each in topic.partitions
    }
    answers = ask_each(context.services.shares, request.group_id, commands, _respond, _refuse)
    return answers.map(_response).soonest()


def _respond(partition: int, _: Any) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=ErrorCode.NONE)


def _refuse(partition: int, error: ApiError) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=error.code, error_message=error.text)


def _response(topics: dict[bytes, list[PartitionAnswer]]) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(
        results=[TopicAnswer(topic_id=topic_id, partitions=answers) for topic_id, answers in topics.items()]
    )
