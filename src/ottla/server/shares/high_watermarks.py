"""The high watermarks of partitions, on whichever node their leaders are."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.entities import NO_LEADER
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.replica.reading import LATEST
from ottla.server.loop.later import Later, gather
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.partitions import Partitions
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

Ends = dict[TopicPartition, int]
_CONSUMER = -1


class HighWatermarks:
    def __init__(self, partitions: Partitions, metadata: MetadataHost, requests: PeerRequests) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._requests = requests

    def of(self, partitions: Iterable[TopicPartition]) -> Later[Ends]:
        """Return the high watermarks; those that are not available now are left out."""
        here: Ends = {}
        elsewhere: dict[int, list[TopicPartition]] = {}
        for where in partitions:
            topic = self._metadata.state.topics.get(where.topic)
            known = topic is not None and 0 <= where.partition < len(topic.partitions)
            leader = topic.partitions[where.partition].leader if topic is not None and known else NO_LEADER
            if leader == self._metadata.node_id:
                partition = self._partitions.get(*where)
                if partition is not None:
                    here[where] = partition.high_watermark
            elif leader != NO_LEADER:
                elsewhere.setdefault(leader, []).append(where)
        asked = [
            self._requests.ask(node_id, _request(wanted), "offsets").map(_read) for node_id, wanted in elsewhere.items()
        ]
        return gather(asked).map(lambda found: {where: end for each in (here, *found) for where, end in each.items()})


def _request(wanted: list[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsRequest.Topic.Partition]] = {}
    for name, index in wanted:
        topics.setdefault(name, []).append(ListOffsetsRequest.Topic.Partition(partition_index=index, timestamp=LATEST))
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        topics=[ListOffsetsRequest.Topic(name=name, partitions=each) for name, each in topics.items()],
    )


def _read(answer: ListOffsetsResponse | ApiError) -> Ends:
    if isinstance(answer, ApiError):
        return {}
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in answer.topics
        for each in topic.partitions
        if not each.error_code
    }
