"""ReadShareGroupStateSummary (key 87): the start offsets of share partitions, for readers that are not their leaders.

v1 count of delivered records
"""

from __future__ import annotations

from ottla.model.ids import FIRST_LEADER_EPOCH
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.share_state_requests import STATE_NEEDS, STATE_PORTIONS, StateForm, ask_share_coordinators
from ottla.server.loop.later import Answer
from ottla.shares.state.commands import ReadSummary, Summary
from ottla.shares.state.partition import NO_COUNT
from ottla.wire.messages.shares.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


@handles(
    ReadShareGroupStateSummaryRequest,
    needs=STATE_NEEDS,
    portions=STATE_PORTIONS,
)
def read_share_group_state_summary(
    request: ReadShareGroupStateSummaryRequest, context: Context
) -> Answer[ReadShareGroupStateSummaryResponse]:
    return ask_share_coordinators(request, context, _FORM)


def _command(
    group_id: str, topic_id: bytes, asked: ReadShareGroupStateSummaryRequest.ReadStateSummaryData.PartitionData
) -> ReadSummary:
    return ReadSummary(group_id, topic_id, asked.partition)


_TOPIC = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
_FORM = StateForm(
    ReadShareGroupStateSummaryResponse,
    _TOPIC,
    _TOPIC.PartitionResult,
    _command,
    Summary(0, FIRST_LEADER_EPOCH, 0, NO_COUNT),
    Summary._asdict,
)
