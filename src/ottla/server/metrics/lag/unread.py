"""What is unread in partitions: where they end, and how long the first unread record has been there.

The leaders of partitions know. Those that this node leads are looked at in slices; other leaders are asked with
ListOffsets, in our own extension of it (`wire/messages/records/list_offsets.py`). What a leader does not tell, because
it is away or no node of ours, is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ottla.cluster.entities import NO_LEADER
from ottla.log.files.disk import Cold, StorageError
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.replica.reading import LATEST
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Tally
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.storage import Storage
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

_PURPOSE = "lag"
_CONSUMER = -1
_NO_RECORD = -2

Wanted = Mapping[TopicPartition, Sequence[int]]  # the offsets from which each partition is unread


class Unread(NamedTuple):
    """One partition: `times_ms` tells for offsets when the first record from there on was written; None if there is no
    such record, as behind the last marker of a transaction; NO_TIMESTAMP if it has no time.
    """

    end: int
    times_ms: Mapping[int, int | None]


class UnreadRecords:
    def __init__(self, runtime: Runtime, storage: Storage, metadata: MetadataHost, requests: PeerRequests) -> None:
        self._slices = runtime.slices
        self._storage = storage
        self._metadata = metadata
        self._requests = requests

    async def of(self, wanted: Wanted) -> dict[TopicPartition, Unread]:
        """Return what is known; all other nodes are asked at the same time."""
        found: dict[TopicPartition, Unread] = {}
        elsewhere: dict[int, list[TopicPartition]] = {}
        tally = Tally(limits.PARTITIONS_OPENED_PER_TURN)
        for where, offsets in wanted.items():
            leader = self._leader_of(where)
            if leader == self._metadata.node_id:
                partition = self._storage.partitions.get(*where)
                if partition is not None:
                    found[where] = self._look(partition, offsets)
                if tally.is_full():
                    await self._slices.turn()
            elif leader != NO_LEADER:
                elsewhere.setdefault(leader, []).append(where)
        await asyncio.gather(*(self._ask(node_id, led, wanted, found) for node_id, led in elsewhere.items()))
        return found

    def _leader_of(self, where: TopicPartition) -> int:
        topic = self._metadata.state.topics.get(where.topic)
        if topic is None or not 0 <= where.partition < len(topic.partitions):
            return NO_LEADER
        return topic.partitions[where.partition].leader

    def _look(self, partition: Partition, offsets: Sequence[int]) -> Unread:
        times_ms: dict[int, int | None] = {}
        for offset in offsets[: limits.UNREAD_OFFSETS_MAX]:
            try:
                times_ms[offset] = partition.unread_since(offset)
            except Cold as cold:  # it is not waited for: the next look finds it in memory
                self._storage.cold.warm(cold, self, lambda: None)
            except StorageError as error:
                self._storage.partitions.storage_failed(partition, error)
                break
        return Unread(partition.high_watermark, times_ms)

    async def _ask(
        self, node_id: int, led: Sequence[TopicPartition], wanted: Wanted, found: dict[TopicPartition, Unread]
    ) -> None:
        left = iter(led)
        while some := list(islice(left, limits.LAG_PARTITIONS_PER_QUESTION)):
            answer = await self._requests.ask(node_id, _request(some, wanted), _PURPOSE)
            if isinstance(answer, ApiError):
                return
            _read(answer, wanted, found)
            await self._slices.turn()


def _request(some: Sequence[TopicPartition], wanted: Wanted) -> ListOffsetsRequest:
    form = ListOffsetsRequest.Topic
    topics: dict[str, ListOffsetsRequest.Topic] = {}
    for where in some:
        topic = topics.setdefault(where.topic, form(name=where.topic, partitions=[]))
        offsets = list(wanted[where][: limits.UNREAD_OFFSETS_MAX])
        topic.partitions.append(form.Partition(partition_index=where.partition, timestamp=LATEST, unread_from=offsets))
    return ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values()))


def _read(answer: ListOffsetsResponse, wanted: Wanted, found: dict[TopicPartition, Unread]) -> None:
    for topic in answer.topics:
        for each in topic.partitions:
            where = TopicPartition(topic.name, each.partition_index)
            if not each.error_code and where in wanted:
                times = (None if time_ms == _NO_RECORD else time_ms for time_ms in each.record_times_ms)
                # A leader of another kind tells no times.
                found[where] = Unread(each.offset, dict(zip(wanted[where], times, strict=False)))
