"""When a produce is acknowledged: once its records are committed, or synced, or written, as acks and settings demand.

A partition that is not led here any more answers NOT_LEADER_OR_FOLLOWER to all waiting produces, and names the leader
(KIP-951).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.server.api.context import Context
from ottla.server.api.leader_hints import leader_of, name_leaders
from ottla.server.loop.current_span import waiting
from ottla.server.loop.later import Later
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from ottla.log.inspection import Destination, Placed

PartitionResponse = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
FIRST_VERSION_BY_ID = ProduceRequest.TopicProduceData.since("topic_id")
_FIRST_VERSION_WITH_LEADER = ProduceResponse.since("node_endpoints")


class Pending(NamedTuple):
    """A partition whose answer waits."""

    partition: Partition | Destination
    cuts: int  # how often the log had been truncated at the append
    end: int  # the offset that its high watermark must reach, or, without `all_replicas`, `own_end`
    answer: PartitionResponse
    all_replicas: bool


def wait_for_placed(placed: tuple[Placed, ...], acks: int, pending: list[Pending], answer: PartitionResponse) -> None:
    """Make the answer wait for records that went to a dead-letter topic, as for the others."""
    for target, cuts, end in placed:
        is_waited_for = acks == ACKS_ALL or target.counts_later  # with acks=0 a slow disk holds the connection
        if is_waited_for and (target.high_watermark < end or target.cuts != cuts):
            pending.append(Pending(target, cuts, end, answer, acks == ACKS_ALL))


def when_durable(
    response: ProduceResponse, pending: list[Pending], timeout_ms: int, version: int, context: Context
) -> Later[ProduceResponse]:
    """Return the response once every pending partition is settled: acknowledged, failed, or timed out."""
    later: Later[ProduceResponse] = Later()

    def settle(changed: object) -> bool:
        waiting = []
        for entry in pending:
            code = _outcome(entry, context)
            if code is None and changed is not None:
                waiting.append(entry)
            elif code != ErrorCode.NONE:
                turn_into_error(entry.answer, ErrorCode.REQUEST_TIMED_OUT if code is None else code)
        pending[:] = waiting
        if pending:
            return False
        name_produce_leaders(response, version, context)
        later.set(response)
        return True

    by_replicas = context.span is not None and any(entry.all_replicas for entry in pending)
    context.storage.waiters.watch(later, [entry.partition for entry in pending], settle, timeout_ms)
    if context.span is not None:
        return waiting(later, context.span, "wait for replicas" if by_replicas else "wait for the disk")
    return later


def _outcome(entry: Pending, context: Context) -> ErrorCode | None:
    """Return NONE if the records are acknowledged, an error if they never will be, and None while that is open."""
    partition = entry.partition
    if not isinstance(partition, Partition):
        stored = ErrorCode.NONE if partition.high_watermark >= entry.end else None
        return stored if partition.cuts == entry.cuts else ErrorCode.KAFKA_STORAGE_ERROR
    if not context.storage.partitions.holds(partition):
        known = leader_of(context, partition.topic, partition.index) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.cuts != entry.cuts:
        # A failed write or sync, or another leader, truncated the record: another one may be at its offset by now.
        taken = partition.is_leader and partition.epoch_start < entry.end
        return ErrorCode.KAFKA_STORAGE_ERROR if taken else ErrorCode.NOT_LEADER_OR_FOLLOWER
    if entry.all_replicas:
        return partition.enough_after(entry.end)
    return ErrorCode.NONE if partition.own_end >= entry.end else None


def name_produce_leaders(response: ProduceResponse, version: int, context: Context) -> None:
    """Name the leaders of the partitions that are not led here."""
    if version >= _FIRST_VERSION_WITH_LEADER:
        by_id = version >= FIRST_VERSION_BY_ID
        name_leaders(
            response,
            ProduceResponse.NodeEndpoint,
            context,
            (
                (topic.topic_id if by_id else topic.name, answer.index, answer)
                for topic in response.responses
                for answer in topic.partition_responses
                if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            ),
        )


def turn_into_error(answer: PartitionResponse, code: ErrorCode) -> None:
    answer.error_code = code
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1
