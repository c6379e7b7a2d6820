"""How a follower continues if its leader does not have the follower's log end offset.

Either the leader lost records that the follower still has (an unclean election): the follower is truncated. Or the
leader has deleted all records up to beyond the follower's end: the follower starts anew at the leader's log start.
"""

from __future__ import annotations

import logging

from ottla.client.connection import Address
from ottla.client.errors import NotConnected
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.model.settings.replication import REPLICA_SOCKET_TIMEOUT_MS
from ottla.replica.partition import Partition
from ottla.replica.reading import EARLIEST, LATEST
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peers import Peers
from ottla.server.replication.cutting import cut_long
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

log = logging.getLogger(__name__)

# A connection of its own: a response on the fetching connection may wait for records.
PURPOSE = "replica-offsets"


class RangeFinder:
    """Moves the log end of a follower to an offset that its leader has."""

    def __init__(self, runtime: Runtime, configs: Configs, storage: Storage, peers: Peers) -> None:
        self._runtime = runtime
        self._configs = configs
        self._storage = storage
        self._peers = peers

    async def move_end(self, partition: Partition, address: Address | None) -> None:
        """Ask the leader at `address` and move the log end. Raises ClientError, ApiError, StorageError."""
        epoch = partition.leader_epoch
        if address is None:
            raise NotConnected(f"broker {partition.leader_id} has no address")
        end, end_epoch = await self._ask(partition, address, LATEST)
        start, _ = await self._ask(partition, address, EARLIEST)
        holds = self._storage.partitions.holds(partition)
        if not holds or partition.is_leader or partition.leader_epoch != epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, "the leader changed meanwhile")
        own_end = partition.log.next_offset
        if end < own_end:
            log.warning("%s ends at %d, its leader at %d: the rest is cut off", partition.name, own_end, end)
            await cut_long(partition, end_epoch, end, self._runtime, self._storage)
        elif start > own_end:
            log.warning("%s ends at %d, its leader starts at %d: begun anew there", partition.name, own_end, start)
            partition.begin_at(start, now_ms=self._runtime.now_ms())

    async def _ask(self, partition: Partition, address: Address, timestamp: int) -> tuple[int, LeaderEpoch]:
        """Return (offset, epoch) of the start or end of the leader's log."""
        topic = ListOffsetsRequest.Topic
        request = ListOffsetsRequest(
            replica_id=self._configs.node_id,
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
        timeout_ms = self._configs.broker[REPLICA_SOCKET_TIMEOUT_MS]
        answer: ListOffsetsResponse = await self._peers.ask(address, request, timeout_ms=timeout_ms, purpose=PURPOSE)
        (found,) = answer.topics[0].partitions
        if found.error_code:
            raise ApiError(ErrorCode(found.error_code))
        return found.offset, found.leader_epoch
