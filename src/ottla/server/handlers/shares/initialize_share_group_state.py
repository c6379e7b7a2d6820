"""InitializeShareGroupState (key 83): create the stored state of share partitions."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.share_state_requests import STATE_NEEDS, STATE_PORTIONS, StateForm, ask_share_coordinators
from ottla.server.loop.later import Answer
from ottla.shares.state.commands import InitializeState
from ottla.wire.messages.shares.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


@handles(
    InitializeShareGroupStateRequest,
    needs=STATE_NEEDS,
    portions=STATE_PORTIONS,
)
def initialize_share_group_state(
    request: InitializeShareGroupStateRequest, context: Context
) -> Answer[InitializeShareGroupStateResponse]:
    return ask_share_coordinators(request, context, _FORM)


def _command(
    group_id: str, topic_id: bytes, asked: InitializeShareGroupStateRequest.InitializeStateData.PartitionData
) -> InitializeState:
    return InitializeState(group_id, topic_id, asked.partition, asked.state_epoch, asked.start_offset)


_TOPIC = InitializeShareGroupStateResponse.InitializeStateResult
_FORM = StateForm(
    InitializeShareGroupStateResponse, _TOPIC, _TOPIC.PartitionResult, _command, None, needs_partitions=False
)
