"""WriteShareGroupState (key 85): the leader of a share partition stores the states of its records.

v1 count of delivered records
"""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.share_state_requests import STATE_NEEDS, STATE_PORTIONS, StateForm, ask_share_coordinators
from ottla.server.loop.later import Answer
from ottla.shares.state.batches import StateBatch
from ottla.shares.state.commands import WriteState
from ottla.wire.messages.shares.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse


@handles(
    WriteShareGroupStateRequest,
    needs=STATE_NEEDS,
    portions=STATE_PORTIONS,
)
def write_share_group_state(
    request: WriteShareGroupStateRequest, context: Context
) -> Answer[WriteShareGroupStateResponse]:
    return ask_share_coordinators(request, context, _FORM)


def _command(
    group_id: str, topic_id: bytes, asked: WriteShareGroupStateRequest.WriteStateData.PartitionData
) -> WriteState:
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


_TOPIC = WriteShareGroupStateResponse.WriteStateResult
_FORM = StateForm(WriteShareGroupStateResponse, _TOPIC, _TOPIC.PartitionResult, _command, None)
