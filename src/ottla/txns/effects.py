"""What a transaction needs done outside its journal, and the notes that no record holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.txns.states import TxnState
from ottla.txns.transaction import Transaction


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """An effect: tell each partition how the transaction ended, then submit `MarkersWritten`."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    commit: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int


class LastEpoch(NamedTuple):
    """A note: the producer had this epoch before, and may not have heard of the new one."""

    transactional_id: str
    epoch: ProducerEpoch


class Sweeping(NamedTuple):
    """A note: whether a timer looks for transactions that run out of time."""

    on: bool


class BegunLater(NamedTuple):
    """A note: a transaction that is taken over began later than now, by what is written down; by how much (below 0)."""

    transactional_id: str
    by_ms: int


def markers_of(transaction: Transaction) -> WriteMarkers:
    """What is left to do for a prepared transaction."""
    return WriteMarkers(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.epoch,
        transaction.state == TxnState.PREPARE_COMMIT,
        transaction.partitions,
        transaction.client_version,
    )
