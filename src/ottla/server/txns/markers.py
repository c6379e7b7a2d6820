"""Markers: tells a partition how a transaction ended that it took part in.

A partition that this node leads is written to at once; markers for others go to their leaders with WriteTxnMarkers, all
that are waiting for one broker together. A partition that no longer exists needs none. Who is to be told, and what
becomes of a partition that cannot be, is the matter of `deliveries`.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import error_code
from ottla.cluster.entities import NO_LEADER
from ottla.log.files.disk import StorageError
from ottla.log.producers.producers import Origin
from ottla.machine.keyed import Marker
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import Outbox, give
from ottla.txns.effects import WriteMarkers
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest

if TYPE_CHECKING:
    from ottla.server.api.context import Services

WritableMarker = WriteTxnMarkersRequest.WritableTxnMarker
WritableMarkerTopic = WritableMarker.WritableTxnMarkerTopic


# What the markers of one slice cost: one that goes to another node, or into files that are open, costs 1.
COST_PER_SLICE = limits.PARTITIONS_PRODUCED_PER_SLICE
_OPENING_COST = COST_PER_SLICE // limits.PARTITIONS_OPENED_PER_SLICE


def marker_cost(services: Services, where: TopicPartition) -> int:
    partitions = services.partitions
    is_closed = partitions.if_opened(*where) is None and partitions.directory_of(where) is not None
    return _OPENING_COST if is_closed else 1


def write_marker(
    services: Services,
    where: TopicPartition,
    producer_id: int,
    epoch: int,
    marker: EndTxnMarker,
    transaction_version: int,
) -> Later[ApiError | None]:
    """Write one marker into a partition that this node leads; None once it counts (is below the high watermark)."""
    done: Later[ApiError | None] = Later()
    try:
        partition = services.partitions.find(*where)
    except ApiError as error:
        done.set(error)
        return done
    now_ms = services.now_ms()
    batch = end_txn_batch(marker, producer_id=producer_id, producer_epoch=epoch, timestamp=now_ms)
    try:
        cuts = partition.cuts
        if where.topic == CONSUMER_OFFSETS_TOPIC:
            host = services.groups.host_at(where.partition)
            if host is None:
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            host.write_marker(batch, Marker(producer_id, epoch, marker.commit), transaction_version)
        else:
            partition.append(
                batch,
                now_ms=now_ms,
                acks=ACKS_ALL,
                origin=Origin.COORDINATOR,
                transaction_version=transaction_version,
            )
            if partition.counts_at_once:
                services.waiters.notify(partition)
            if partition.needs_sync:
                services.syncer.request(partition)
    except ApiError as error:
        done.set(error)
    except StorageError as error:
        services.partitions.storage_failed(partition, error)
        done.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
    else:
        services.guards.marked(where, producer_id)
        _when_counted(services, partition, cuts, partition.log.next_offset, done)
    return done


def _when_counted(
    services: Services, partition: Partition, cuts: int, end_offset: int, done: Later[ApiError | None]
) -> None:
    epoch = partition.leader_epoch

    def settle(changed: Partition | None) -> bool:
        if partition.cuts != cuts:
            done.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk failed, and the marker was taken back"))
        elif partition.leader_epoch != epoch or not partition.is_leader:
            done.set(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif partition.high_watermark >= end_offset:
            done.set(None)
        elif not services.partitions.holds(partition):
            done.set(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif changed is None:
            done.set(ApiError(ErrorCode.REQUEST_TIMED_OUT))
        else:
            return False
        return True

    if not settle(partition):
        services.waiters.watch(done, [partition], settle, limits.MARKERS_WAIT_MS_MAX)


class Marked(NamedTuple):
    """One marker on its way to another broker."""

    where: TopicPartition
    effect: WriteMarkers
    coordinator_epoch: int
    done: Later[ApiError | None]

    @property
    def identity(self) -> tuple[int, TopicPartition]:
        return self.effect.producer_id, self.where


class Markers:
    def __init__(self, services: Services) -> None:
        self.services = services
        self._outbox: Outbox[int, Marked] = Outbox(self._send, lambda marked: marked.identity)

    def tell(self, where: TopicPartition, effect: WriteMarkers, coordinator_epoch: int) -> Later[ApiError | None]:
        """Has the leader of a partition write the marker; None once it counts, or there is no such partition."""
        services = self.services
        done: Later[ApiError | None] = Later()
        topic = services.metadata.state.topics.get(where.topic)
        if topic is None or where.partition >= len(topic.partitions):
            done.set(None)  # deleted
            return done
        leader = topic.partitions[where.partition].leader
        if leader == services.node_id:
            marker = EndTxnMarker(effect.commit, coordinator_epoch)
            return write_marker(services, where, effect.producer_id, effect.epoch, marker, effect.transaction_version)
        if leader == NO_LEADER:
            done.set(ApiError(ErrorCode.LEADER_NOT_AVAILABLE))
        else:
            self._outbox.put(leader, Marked(where, effect, coordinator_epoch, done))
        return done

    def _send(self, node_id: int, items: list[Marked]) -> Later[None]:
        markers: dict[tuple[int, int, bool, int, int], WritableMarker] = {}
        topics: dict[tuple[Hashable, str], WritableMarkerTopic] = {}
        for where, effect, coordinator_epoch, _ in items:
            # Not by the effect itself: its hash would be that of all its partitions.
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
        request = WriteTxnMarkersRequest(markers=list(markers.values()))
        return self.services.peer_requests.ask(node_id, request, "markers").map(partial(_settle, items))


def _settle(items: list[Marked], answer: Any) -> None:
    codes = {}
    if not isinstance(answer, ApiError):
        codes = {
            (marker.producer_id, TopicPartition(topic.name, each.partition_index)): each.error_code
            for marker in answer.markers
            for topic in marker.topics
            for each in topic.partitions
        }
    for marked in items:
        code = codes.get(marked.identity, ErrorCode.NETWORK_EXCEPTION)
        give(marked.done, ApiError(error_code(code)) if code else None)
