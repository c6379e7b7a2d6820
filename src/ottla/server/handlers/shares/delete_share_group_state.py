"""DeleteShareGroupState (key 86): delete the stored state of share partitions."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.share_state_requests import STATE_NEEDS, STATE_PORTIONS, StateForm, ask_share_coordinators
from ottla.server.loop.later import Answer
from ottla.shares.state.commands import DeleteState
from ottla.wire.messages.shares.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)


@handles(
    DeleteShareGroupStateRequest,
    needs=STATE_NEEDS,
    portions=STATE_PORTIONS,
)
def delete_share_group_state(
    request: DeleteShareGroupStateRequest, context: Context
) -> Answer[DeleteShareGroupStateResponse]:
    return ask_share_coordinators(request, context, _FORM)


def _command(
    group_id: str, topic_id: bytes, asked: DeleteShareGroupStateRequest.DeleteStateData.PartitionData
) -> DeleteState:
    return DeleteState(group_id, topic_id, asked.partition)


_TOPIC = DeleteShareGroupStateResponse.DeleteStateResult
_FORM = StateForm(DeleteShareGroupStateResponse, _TOPIC, _TOPIC.PartitionResult, _command, None)
