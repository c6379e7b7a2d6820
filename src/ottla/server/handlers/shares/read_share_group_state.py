"""ReadShareGroupState (key 84): the leader of a share partition loads its state; earlier leaders can no longer write
it.
"""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.share_state_requests import STATE_NEEDS, STATE_PORTIONS, StateForm, ask_share_coordinators
from ottla.server.loop.later import Answer
from ottla.shares.state.commands import ReadState, StoredShareState
from ottla.shares.state.partition import NO_COUNT
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

TopicAnswer = ReadShareGroupStateResponse.ReadStateResult
PartitionAnswer = TopicAnswer.PartitionResult


@handles(
    ReadShareGroupStateRequest,
    needs=STATE_NEEDS,
    portions=STATE_PORTIONS,
)
def read_share_group_state(
    request: ReadShareGroupStateRequest, context: Context
) -> Answer[ReadShareGroupStateResponse]:
    return ask_share_coordinators(request, context, _FORM)


def _command(
    group_id: str, topic_id: bytes, asked: ReadShareGroupStateRequest.ReadStateData.PartitionData
) -> ReadState:
    return ReadState(group_id, topic_id, asked.partition, asked.leader_epoch)


def _fields(state: StoredShareState) -> dict[str, object]:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [PartitionAnswer.StateBatch(**batch._asdict()) for batch in state.batches],
    }


_FORM = StateForm(
    ReadShareGroupStateResponse,
    TopicAnswer,
    PartitionAnswer,
    _command,
    StoredShareState(0, 0, NO_COUNT, ()),
    _fields,
)
