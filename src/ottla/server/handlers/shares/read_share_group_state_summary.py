"""ReadShareGroupStateSummary (key 87): where share partitions start, for those who only want to know.

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
from ottla.shares.state.commands import ReadSummary, Summary
from ottla.wire.messages.shares.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

TopicAnswer = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
PartitionAnswer = TopicAnswer.PartitionResult


@handles(
    ReadShareGroupStateSummaryRequest,
    portions=Portions("topics.partitions", "results.partitions", limits.ITEMS_PER_SLICE),
)
def read_share_group_state_summary(
    request: ReadShareGroupStateSummaryRequest, context: Context
) -> Answer[ReadShareGroupStateSummaryResponse]:
    if not is_askable(request.group_id, request.topics):
        return ReadShareGroupStateSummaryResponse(results=[])

    def command(topic_id: bytes, each: Any) -> Any:
        return ReadSummary(request.group_id, topic_id, each.partition)

    answers = ask_partitions(context, request, command, _respond, _refuse, TopicAnswer)
    return answers.map(lambda topics: ReadShareGroupStateSummaryResponse(results=topics)).soonest()


def _respond(partition: int, summary: Summary) -> PartitionAnswer:
    return PartitionAnswer(
        partition=partition,
        error_code=ErrorCode.NONE,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )


def _refuse(partition: int, error: ApiError) -> PartitionAnswer:
    return PartitionAnswer(
        partition=partition,
        error_code=error.code,
        error_message=error.text,
        state_epoch=0,
        leader_epoch=0,
        start_offset=0,
    )
