"""Markers: writes the ends of transactions into the partitions that took part in them.

One `Delivery` per prepared transaction. Partitions that this node leads are written to at once; markers for others go
to their leaders with WriteTxnMarkers, all that are waiting for one broker together. A partition that cannot be written
to is tried again, wherever its leader is by then, until it can, whatever that takes: the transaction is decided, and
readers wait for the marker. A partition that no longer exists needs none. When all are told, the coordinator hears
`MarkersWritten`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import error_code
from ottla.cluster.entities import NO_LEADER
from ottla.log.disk import StorageError
from ottla.log.producers import Origin
from ottla.machine.keyed import Marker
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.server.answer import Later
from ottla.server.elsewhere import Outbox, ask, give
from ottla.txns.commands.end import MarkersWritten
from ottla.txns.effects import WriteMarkers
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest

if TYPE_CHECKING:
    from ottla.server.context import Services
    from ottla.server.host import Host
    from ottla.txns.machine import TransactionsMachine

log = logging.getLogger(__name__)

WritableMarker = WriteTxnMarkersRequest.WritableTxnMarker
WritableMarkerTopic = WritableMarker.WritableTxnMarkerTopic

# With these there is nobody to tell: the partition has heard of a later transaction, or of this one's end from a later
# coordinator.
_NEEDLESS = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


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
            done.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "a failed sync took the marker back"))
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
    """The deliveries of a node."""

    def __init__(self, loop: Any, services: Services) -> None:
        self.loop = loop
        self.services = services
        self._outbox: Outbox[int, Marked] = Outbox(self._send, lambda marked: marked.identity)

    def write(self, effect: WriteMarkers, host: Host[TransactionsMachine]) -> None:
        """Carries out the transaction coordinator's wish."""
        Delivery(self, effect, host).send(effect.partitions)

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
        markers: dict[tuple[WriteMarkers, int], dict[str, list[int]]] = {}
        for each in items:
            topics = markers.setdefault((each.effect, each.coordinator_epoch), {})
            topics.setdefault(each.where.topic, []).append(each.where.partition)
        request = WriteTxnMarkersRequest(
            markers=[
                WritableMarker(
                    producer_id=effect.producer_id,
                    producer_epoch=effect.epoch,
                    transaction_result=effect.commit,
                    topics=[WritableMarkerTopic(name=name, partition_indexes=each) for name, each in topics.items()],
                    coordinator_epoch=coordinator_epoch,
                    transaction_version=effect.transaction_version,
                )
                for (effect, coordinator_epoch), topics in markers.items()
            ]
        )
        return ask(self.services, node_id, request, "markers").map(partial(_settle, items))


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


class Delivery:
    """The markers of one transaction, on their way."""

    def __init__(self, markers: Markers, effect: WriteMarkers, host: Host[TransactionsMachine]) -> None:
        self._markers = markers
        self._loop = markers.loop
        self._effect = effect
        self._host = host
        self._machine = host.machine  # a host that loaded anew wants the markers anew, with an effect of its own
        self._left = 0
        self._complained: set[TopicPartition] = set()

    def send(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._left = len(partitions) + 1
        for where in partitions:
            self._send(where)
        self._told()  # whoever is not held up by anything

    def _send(self, where: TopicPartition) -> None:
        """To whoever leads the partition."""
        epoch = self._host.leader_epoch
        self._markers.tell(where, self._effect, epoch).then(lambda error: self._answered(where, error))

    def _answered(self, where: TopicPartition, error: ApiError | None) -> None:
        if error is None or error.code in _NEEDLESS:
            self._told()
            return
        if where not in self._complained:
            self._complained.add(where)
            log.warning(
                "the end of %s's transaction cannot be written to %s: %s", self._effect.transactional_id, where, error
            )
        self._loop.call_later(limits.MARKERS_RETRY_MS / 1000, self._retry, where)

    def _retry(self, where: TopicPartition) -> None:
        if self._host.active and self._host.machine is self._machine:
            self._send(where)

    def _told(self) -> None:
        self._left -= 1
        if not self._left and self._host.machine is self._machine:
            effect = self._effect
            done = MarkersWritten(effect.transactional_id, effect.producer_id, effect.epoch)
            self._host.submit(done, self._completed)

    def _completed(self, answer: Any) -> None:
        """The journal could not be written: the same again later, markers included."""
        if isinstance(answer, ApiError) and self._host.active and self._host.machine is self._machine:
            self._loop.call_later(limits.MARKERS_RETRY_MS / 1000, self.send, self._effect.partitions)
