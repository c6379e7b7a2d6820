"""The effects of transactions outside the journal, and the notes that no record holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.txns.states import PREPARED, TxnState
from ottla.txns.transaction import TransactionMetadata


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """An effect: write the end of the transaction to each partition, then submit `MarkersWritten`."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    commit: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int


class LastEpoch(NamedTuple):
    """A note: this was the producer's epoch before the present one, which the producer may not have learnt of."""

    transactional_id: str
    epoch: ProducerEpoch


class Sweeping(NamedTuple):
    """A note: whether a timer checks for transactions that time out."""

    on: bool


class BegunLater(NamedTuple):
    """A note: by its record, a loaded transaction starts in the future; `by_ms` (negative) is the difference."""

    transactional_id: str
    by_ms: int


def markers_of(transaction: TransactionMetadata) -> WriteMarkers:
    """Return the markers that a prepared transaction still needs."""
    assert transaction.state in PREPARED, f"{transaction.transactional_id}: markers in {transaction.state.text}"
    return WriteMarkers(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.epoch,
        transaction.state == TxnState.PREPARE_COMMIT,
        transaction.partitions,
        transaction.client_version,
    )
