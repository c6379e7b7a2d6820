"""Markers: has the leader of a partition write the end of a transaction that the partition took part in.

A partition that this node leads is written to at once; markers for others are sent to their leaders with
WriteTxnMarkers, all that wait for one broker together. A deleted partition needs no marker. `server/txns/deliveries.py`
decides which partitions get markers, and when a failed attempt is repeated.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ottla.client.errors import error_code
from ottla.cluster.entities import NO_LEADER
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.control import EndTxnMarker
from ottla.server.loop.later import Later, settled
from ottla.server.peers.peer_requests import PeerQuestions, PeerRequests
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.txns.marker_writer import MarkerWriter
from ottla.txns.effects import WriteMarkers
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

WritableMarker = WriteTxnMarkersRequest.WritableTxnMarker
WritableMarkerTopic = WritableMarker.WritableTxnMarkerTopic


class Markers:
    def __init__(self, metadata: MetadataHost, writer: MarkerWriter, requests: PeerRequests) -> None:
        self._metadata = metadata
        self._writer = writer
        self._requests = WriteMarkersRequests(requests)

    def cost(self, where: TopicPartition) -> int:
        """Return the cost of the partition's marker in a slice."""
        return self._writer.cost(where)

    def write(self, where: TopicPartition, effect: WriteMarkers, coordinator_epoch: int) -> Later[ApiError | None]:
        """Have the partition's current leader write the marker. Set to None once it is committed, or if the partition
        does not exist.
        """
        topic = self._metadata.state.topics.get(where.topic)
        if topic is None or where.partition >= len(topic.partitions):
            return settled(None)  # deleted
        leader = topic.partitions[where.partition].leader
        if leader == self._metadata.node_id:
            marker = EndTxnMarker(effect.commit, coordinator_epoch)
            return self._writer.write(where, effect.producer_id, effect.epoch, marker, effect.transaction_version)
        if leader == NO_LEADER:
            return settled(ApiError(ErrorCode.LEADER_NOT_AVAILABLE))
        return self._requests.ask(leader, SentMarker(where, effect, coordinator_epoch))


class SentMarker(NamedTuple):
    """One marker to be sent to another broker."""

    where: TopicPartition
    effect: WriteMarkers
    coordinator_epoch: int


class WriteMarkersRequests(PeerQuestions[int, SentMarker, WriteTxnMarkersResponse, ApiError | None]):
    """WriteTxnMarkers requests to other brokers."""

    purpose = "markers"

    def node_of(self, key: int) -> int:
        return key

    def identity(self, question: SentMarker) -> tuple[int, TopicPartition]:
        return question.effect.producer_id, question.where

    def request(self, key: int, questions: list[SentMarker]) -> WriteTxnMarkersRequest:
        markers: dict[tuple[int, int, bool, int, int], WritableMarker] = {}
        topics: dict[tuple[Hashable, str], WritableMarkerTopic] = {}
        for where, effect, coordinator_epoch in questions:
            # Not the effect itself as the key: hashing it would hash all its partitions.
            same = (effect.producer_id, effect.epoch, effect.commit, coordinator_epoch, effect.transaction_version)
            if same not in markers:
                markers[same] = WritableMarker(
                    producer_id=effect.producer_id,
                    producer_epoch=effect.epoch,
                    transaction_result=effect.commit,
                    topics=[],
                    coordinator_epoch=coordinator_epoch,
                    transaction_version=effect.transaction_version,
                )
            topic = topics.get((same, where.topic))
            if topic is None:
                topic = topics[same, where.topic] = WritableMarkerTopic(name=where.topic, partition_indexes=[])
                markers[same].topics.append(topic)
            topic.partition_indexes.append(where.partition)
        return WriteTxnMarkersRequest(markers=list(markers.values()))

    def answers(self, key: int, response: WriteTxnMarkersResponse) -> dict[Hashable, ApiError | None]:
        return {
            (marker.producer_id, TopicPartition(topic.name, each.partition_index)): ApiError(
                error_code(each.error_code)
            )
            if each.error_code
            else None
            for marker in response.markers
            for topic in marker.topics
            for each in topic.partitions
        }

    def refused(self, question: SentMarker, error: ApiError) -> ApiError:
        return error
