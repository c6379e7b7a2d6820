"""Acknowledgements in ShareFetch and ShareAcknowledge requests, with an outcome per partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.fetch.share_sessions import Named
from ottla.server.loop.later import Later, settled
from ottla.server.shares.share_partitions import SharePartitions
from ottla.shares.partition.acknowledgement_checks import acks_of
from ottla.shares.partition.terms import AckType
from ottla.shares.state.partition import SharePartitionId
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest

AcknowledgedTopic: TypeAlias = ShareFetchRequest.FetchTopic | ShareAcknowledgeRequest.AcknowledgeTopic
_Partition: TypeAlias = (
    ShareFetchRequest.FetchTopic.FetchPartition | ShareAcknowledgeRequest.AcknowledgeTopic.AcknowledgePartition
)


def acknowledge(
    shares: SharePartitions, group_id: str, member_id: str, topics: Iterable[AcknowledgedTopic], *, renew: bool
) -> dict[Named, Later[ApiError | None]]:
    """Return the outcome per partition; partitions without acknowledgements are left out."""
    outcomes: dict[Named, Later[ApiError | None]] = {}
    for topic in topics:
        for partition in topic.partitions:
            if partition.acknowledgement_batches:
                id = SharePartitionId(group_id, topic.topic_id, partition.partition_index)
                outcomes[id.topic_id, id.partition] = _one(shares, id, member_id, partition, renew)
    return outcomes


def _one(
    shares: SharePartitions, id: SharePartitionId, member_id: str, partition: _Partition, renew: bool
) -> Later[ApiError | None]:
    try:
        shares.led(id)
        acks = acks_of(partition.acknowledgement_batches, renew=renew)
        if not shares.rules.of(id.group_id).renew and any(AckType.RENEW in ack.types for ack in acks):
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")
    except ApiError as error:
        return settled(error)
    return shares.acknowledge(id, member_id, acks)
