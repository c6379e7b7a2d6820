"""WriteShareGroupState (key 85): a share-partition leader stores what became of records.

v1 count of delivered records
"""

from __future__ import annotations

from typing import Any

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.server.shares.coordinators import ask_partitions, is_askable
from ottla.shares.state.batches import StateBatch
from ottla.shares.state.commands import WriteState
from ottla.wire.messages.shares.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

Asked = WriteShareGroupStateRequest.WriteStateData.PartitionData
TopicAnswer = WriteShareGroupStateResponse.WriteStateResult
PartitionAnswer = TopicAnswer.PartitionResult


@handles(
    WriteShareGroupStateRequest, portions=Portions("topics.partitions", "results.partitions", limits.ITEMS_PER_SLICE)
)
def write_share_group_state(
    request: WriteShareGroupStateRequest, context: Context
) -> Answer[WriteShareGroupStateResponse]:
    if not is_askable(request.group_id, request.topics):
        return WriteShareGroupStateResponse(results=[])

    def command(topic_id: bytes, each: Any) -> Any:
        return _command(request.group_id, topic_id, each)

    answers = ask_partitions(context, request, command, _respond, _refuse, TopicAnswer)
    return answers.map(lambda topics: WriteShareGroupStateResponse(results=topics)).soonest()


def _respond(partition: int, _: Any) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=ErrorCode.NONE)


def _refuse(partition: int, error: ApiError) -> PartitionAnswer:
    return PartitionAnswer(partition=partition, error_code=error.code, error_message=error.text)


def _command(group_id: str, topic_id: bytes, asked: Asked) -> WriteState:
    return WriteState(
        group_id,
        topic_id,
        asked.partition,
        asked.state_epoch,
        asked.leader_epoch,
        asked.start_offset,
        asked.delivery_complete_count,
        tuple(
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in asked.state_batches
        ),
    )
