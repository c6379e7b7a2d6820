"""AllocateProducerIds: give one broker a block of producer ids that no other ever gets, not even after a crash."""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BrokerEpoch, ProducerId
from ottla.model.limits import INT64_MAX, PRODUCER_ID_BLOCK_SIZE
from ottla.wire.journal import cluster_metadata as journal


class ProducerIdBlock(NamedTuple):
    """The ids `first` … `first + size - 1`."""

    first: int
    size: int


class AllocateProducerIds(NamedTuple):
    """Replies with a ProducerIdBlock."""

    broker_id: int
    broker_epoch: BrokerEpoch

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, ProducerIdBlock]:
        view.checked_broker(self.broker_id, self.broker_epoch)
        first = view.state.next_producer_id
        if first > INT64_MAX - PRODUCER_ID_BLOCK_SIZE:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been used.")
        record = journal.ProducerIdsRecord(
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            next_producer_id=ProducerId(first + PRODUCER_ID_BLOCK_SIZE),
        )
        return Result([MetadataEntry(record)], ProducerIdBlock(first, PRODUCER_ID_BLOCK_SIZE))
