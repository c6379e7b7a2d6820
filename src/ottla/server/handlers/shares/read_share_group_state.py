"""ReadShareGroupState (key 84): a share-partition leader loads its state; those before it may write no more."""

from __future__ import annotations

from typing import Any

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.server.shares.coordinators import ask_partitions, is_askable
from ottla.shares.state.commands import ReadState, StoredShareState
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

TopicAnswer = ReadShareGroupStateResponse.ReadStateResult
PartitionAnswer = TopicAnswer.PartitionResult


@handles(
    ReadShareGroupStateRequest, portions=Portions("topics.partitions", "results.partitions", limits.ITEMS_PER_SLICE)
)
def read_share_group_state(
    request: ReadShareGroupStateRequest, context: Context
) -> Answer[ReadShareGroupStateResponse]:
    if not is_askable(request.group_id, request.topics):
        return ReadShareGroupStateResponse(results=[])

    def command(topic_id: bytes, each: Any) -> Any:
        return ReadState(request.group_id, topic_id, each.partition, each.leader_epoch)

    answers = ask_partitions(context, request, command, _respond, _refuse, TopicAnswer)
    return answers.map(lambda topics: ReadShareGroupStateResponse(results=topics)).soonest()


def _respond(partition: int, state: StoredShareState) -> PartitionAnswer:
    return PartitionAnswer(
        partition=partition,
        error_code=ErrorCode.NONE,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[PartitionAnswer.StateBatch(**batch._asdict()) for batch in state.batches],
    )


def _refuse(partition: int, error: ApiError) -> PartitionAnswer:
    return PartitionAnswer(
        partition=partition,
        error_code=error.code,
        error_message=error.text,
        state_epoch=0,
        start_offset=0,
        state_batches=[],
    )
