"""MarkerWriter: appends transaction markers to partitions that this node leads."""

from __future__ import annotations

from collections.abc import Callable

from ottla.groups.view import GroupsView
from ottla.log.files.disk import StorageError
from ottla.log.producers.producers import Origin
from ottla.machine.keyed import Marker
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.server.coordination.host import Host
from ottla.server.loop.later import Later, settled
from ottla.server.storage.storage import Storage

# The cost budget of one slice: a marker that goes to another node, or to an opened partition, costs 1.
COST_PER_SLICE = limits.PARTITIONS_PRODUCED_PER_SLICE
_OPENING_COST = COST_PER_SLICE // limits.PARTITIONS_OPENED_PER_SLICE


class MarkerWriter:
    """`offsets_host` finds the group coordinator on a partition of `__consumer_offsets`, which must apply markers in
    its journal. `on_written` is called for every marker.
    """

    def __init__(
        self,
        storage: Storage,
        now_ms: Callable[[], int],
        offsets_host: Callable[[int], Host[GroupsView] | None],
        on_written: Callable[[TopicPartition, ProducerId], None],
    ) -> None:
        self._storage = storage
        self._now_ms = now_ms
        self._offsets_host = offsets_host
        self._on_written = on_written

    def cost(self, where: TopicPartition) -> int:
        """Return the cost of a marker for this partition: higher if the partition has to be opened."""
        partitions = self._storage.partitions
        is_closed = partitions.if_opened(*where) is None and partitions.directory_of(where) is not None
        return _OPENING_COST if is_closed else 1

    def write(
        self,
        where: TopicPartition,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        marker: EndTxnMarker,
        transaction_version: int,
    ) -> Later[ApiError | None]:
        """Append one marker to a partition that this node leads; None once it is below the high watermark."""
        partitions = self._storage.partitions
        try:
            partition = partitions.find(*where)
        except ApiError as error:
            return settled(error)
        cuts = partition.cuts
        try:
            self._append(partition, producer_id, epoch, marker, transaction_version)
        except ApiError as error:
            return settled(error)
        except StorageError as error:
            partitions.storage_failed(partition, error)
            return settled(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
        self._on_written(where, producer_id)
        return self._when_committed(partition, cuts, partition.log.next_offset)

    def _append(
        self,
        partition: Partition,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        marker: EndTxnMarker,
        transaction_version: int,
    ) -> None:
        now_ms = self._now_ms()
        batch = end_txn_batch(marker, producer_id=producer_id, producer_epoch=epoch, timestamp=now_ms)
        if partition.topic == CONSUMER_OFFSETS_TOPIC:
            host = self._offsets_host(partition.index)
            if host is None:
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            host.write_marker(batch, Marker(producer_id, epoch, marker.commit), transaction_version)
            return
        partition.append(
            batch,
            now_ms=now_ms,
            acks=ACKS_ALL,
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        self._storage.appended(partition)

    def _when_committed(self, partition: Partition, cuts: int, end_offset: int) -> Later[ApiError | None]:
        done: Later[ApiError | None] = Later()
        epoch = partition.leader_epoch

        def settle(changed: object) -> bool:
            if partition.cuts != cuts:
                done.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk failed, and the marker was taken back"))
            elif partition.leader_epoch != epoch or not partition.is_leader:
                done.set(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            elif partition.high_watermark >= end_offset:
                done.set(None)
            elif not self._storage.partitions.holds(partition):
                done.set(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif changed is None:
                done.set(ApiError(ErrorCode.REQUEST_TIMED_OUT))
            return done.done

        if not settle(partition):
            self._storage.waiters.watch(done, [partition], settle, limits.MARKERS_WAIT_MS_MAX)
        return done
