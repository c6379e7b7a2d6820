"""InitializeShareGroupState (key 83): begin the stored state of share partitions."""

from __future__ import annotations

from typing import Any

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.server.shares.coordinators import ask_partitions
from ottla.shares.state.commands import InitializeState
from ottla.wire.messages.shares.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

TopicAnswer = InitializeShareGroupStateResponse.InitializeStateResult
PartitionAnswer = TopicAnswer.PartitionResult


@handles(
    InitializeShareGroupStateRequest,
    portions=Portions("topics.partitions", "results.partitions", limits.ITEMS_PER_SLICE),
)
def initialize_share_group_state(
    request: InitializeShareGroupStateRequest, context: Context
) -> Answer[InitializeShareGroupStateResponse]:
    if not request.group_id:
        return InitializeShareGroupStateResponse(results=[])

    def command(topic_id: bytes, each: Any) -> Any:
        return InitializeState(request.group_id, topic_id, each.partition, each.state_epoch, each.start_offset)

    answers = ask_partitions(context, request, command, _respond, _refuse, TopicAnswer)
    return answers.map(lambda topics: InitializeShareGroupStateResponse(results=topics)).soonest()


def _respond(partition: int, _: Any) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=ErrorCode.NONE)


def _refuse(partition: int, error: ApiError) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=error.code, error_message=error.text)
