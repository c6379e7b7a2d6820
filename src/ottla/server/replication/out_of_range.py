"""Where a follower goes on whose end its leader does not have.

Either the leader lost what the follower still has (an unclean election): the follower's surplus is cut off. Or the
leader has deleted everything up to beyond the follower's end: the follower begins anew at the leader's start.
"""

from __future__ import annotations

import logging

from ottla.client.connection import Address
from ottla.client.errors import NotConnected
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.replication import REPLICA_SOCKET_TIMEOUT_MS
from ottla.replica.partition import Partition
from ottla.replica.reading import EARLIEST, LATEST
from ottla.server.api.context import Services
from ottla.server.replication.cutting import cut_long
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

log = logging.getLogger(__name__)

# Not the connection that fetches: an answer there may wait for records to come.
PURPOSE = "replica-offsets"


async def find_range(partition: Partition, address: Address | None, services: Services) -> None:
    """Brings the end of the log to where the leader has something. Raises ClientError, ApiError, StorageError."""
    epoch = partition.leader_epoch
    if address is None:
        raise NotConnected(f"broker {partition.leader_id} has no address")
    end, end_epoch = await _ask(partition, address, LATEST, services)
    start, _ = await _ask(partition, address, EARLIEST, services)
    if not services.partitions.holds(partition) or partition.is_leader or partition.leader_epoch != epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, "the leader changed meanwhile")
    own_end = partition.log.next_offset
    now_ms = services.now_ms()
    if end < own_end:
        log.warning("%s ends at %d, its leader at %d: the rest is cut off", partition.name, own_end, end)
        await cut_long(partition, end_epoch, end, services)
    elif start > own_end:
        log.warning("%s ends at %d, its leader starts at %d: begun anew there", partition.name, own_end, start)
        partition.begin_at(start, now_ms=now_ms)


async def _ask(partition: Partition, address: Address, timestamp: int, services: Services) -> tuple[int, int]:
    """(offset, epoch) of an end of the leader's log."""
    topic = ListOffsetsRequest.Topic
    request = ListOffsetsRequest(
        replica_id=services.node_id,
        topics=[
            topic(
                name=partition.topic,
                partitions=[
                    topic.Partition(
                        partition_index=partition.index,
                        current_leader_epoch=partition.leader_epoch,
                        timestamp=timestamp,
                    )
                ],
            )
        ],
    )
    timeout_ms = services.configs.broker[REPLICA_SOCKET_TIMEOUT_MS]
    answer: ListOffsetsResponse = await services.peers.ask(address, request, timeout_ms=timeout_ms, purpose=PURPOSE)
    (found,) = answer.topics[0].partitions
    if found.error_code:
        raise ApiError(ErrorCode(found.error_code))
    return found.offset, found.leader_epoch
