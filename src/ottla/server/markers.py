"""Markers: writes the ends of transactions into the partitions that took part in them.

One `Delivery` per prepared transaction; every partition is led by this node for now. A partition that cannot be written
to is tried again until it can, whatever that takes: the transaction is decided, and readers wait for the marker. A
partition that no longer exists needs none. When all are told, the coordinator hears `MarkersWritten`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ottla.log.disk import StorageError
from ottla.log.producers import Origin
from ottla.machine.keyed import Marker
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.replica.partition import Partition
from ottla.server.answer import Later
from ottla.txns.commands.end import MarkersWritten
from ottla.txns.effects import WriteMarkers

if TYPE_CHECKING:
    from ottla.server.context import Services
    from ottla.server.hosts import Host
    from ottla.txns.machine import TransactionsMachine

log = logging.getLogger(__name__)

# With these there is nobody to tell: the topic was deleted (or made anew), or the partition has heard of a later
# transaction, or of this one's end from a later coordinator.
_NEEDLESS = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)


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
            partition.append(batch, now_ms=now_ms, origin=Origin.COORDINATOR, transaction_version=transaction_version)
            if not partition.durable:
                services.waiters.notify(partition)
            if partition.needs_sync:
                services.syncer.request(partition)
    except ApiError as error:
        done.set(error)
    except StorageError as error:
        services.partitions.storage_failed(partition, error)
        done.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
    else:
        _when_counted(services, partition, cuts, partition.log.next_offset, done)
    return done


def _when_counted(
    services: Services, partition: Partition, cuts: int, end_offset: int, done: Later[ApiError | None]
) -> None:
    def settle(changed: Partition | None) -> bool:
        if partition.cuts != cuts:
            done.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "a failed sync took the marker back"))
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
        services.waiters.watch(done, [partition], settle, limits.WAIT_MS_MAX)


def write_markers(loop: Any, services: Services, effect: WriteMarkers, host: Host[TransactionsMachine]) -> None:
    """Carries out the transaction coordinator's wish."""
    Delivery(loop, services, effect, host).send(effect.partitions)


class Delivery:
    """The markers of one transaction, on their way."""

    def __init__(self, loop: Any, services: Services, effect: WriteMarkers, host: Host[TransactionsMachine]) -> None:
        self._loop = loop
        self._services = services
        self._effect = effect
        self._host = host
        self._machine = host.machine  # a host that loaded anew wants the markers anew, with an effect of its own
        self._marker = EndTxnMarker(effect.commit, host.partition.leader_epoch)
        self._left = 0
        self._complained: set[TopicPartition] = set()

    def send(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._left = len(partitions) + 1
        for where in partitions:
            self._send(where)
        self._told()  # whoever is not held up by anything

    def _send(self, where: TopicPartition) -> None:
        """To whoever leads the partition."""
        effect = self._effect
        write_marker(
            self._services, where, effect.producer_id, effect.epoch, self._marker, effect.transaction_version
        ).then(lambda error: self._answered(where, error))

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
