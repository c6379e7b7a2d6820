"""AddPartitions: add partitions to a producer's transaction, which begins with the first of them; VerifyPartitions:
check whether partitions were added.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.txns.commands.timeouts import first_look
from ottla.txns.effects import Sweeping
from ottla.txns.states import AT_REST, PREPARED, TxnState
from ottla.txns.transaction import TransactionMetadata
from ottla.txns.view import TxnsView


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Add partitions. `client_version` is 2 if the partition's leader asks on behalf of a client that does not ask
    itself.
    """

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    partitions: tuple[TopicPartition, ...]
    client_version: int = 0

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, None]:
        # Before the producer id is compared: it may be that of the next transaction, which is not the present one yet.
        _check_not_ending(view.known(self.transactional_id))
        found = _of_producer(view, self.transactional_id, self.producer_id, self.epoch)
        new = set(self.partitions).difference(found.partitions)
        if found.state == TxnState.ONGOING and not new:
            return Result()
        if len(found.partitions) + len(new) > limits.PARTITIONS_PER_TRANSACTION_MAX:
            # The error that a record gets which is too large for the journal.
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The transaction would have too many partitions.")
        added = found.to(
            TxnState.ONGOING,
            now_ms,
            partitions=(*found.partitions, *(each for each in dict.fromkeys(self.partitions) if each in new)),
            started_ms=now_ms if found.state in AT_REST else found.started_ms,
            client_version=self.client_version,
        )
        timers: list[Timer] = []
        notes: list[Sweeping] = []
        if not view.state.sweeping:
            timers.append(first_look(view, now_ms))
            notes.append(Sweeping(True))
        return Result(records=[view.entry(added)], timers=timers, notes=notes)


@dataclass(frozen=True, slots=True)
class VerifyPartitions:
    """Replies with those partitions that are not part of the transaction."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    partitions: tuple[TopicPartition, ...]

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, list[TopicPartition]]:
        found = _of_producer(view, self.transactional_id, self.producer_id, self.epoch)
        _check_not_ending(found)
        joined = frozenset(found.partitions)
        return Result(reply=[each for each in self.partitions if each not in joined])


def _of_producer(
    view: TxnsView, transactional_id: str, producer_id: ProducerId, epoch: ProducerEpoch
) -> TransactionMetadata:
    found = view.known(transactional_id)
    if found.producer_id != producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if found.epoch != epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    return found


def _check_not_ending(found: TransactionMetadata) -> None:
    """Raise ApiError while markers are missing."""
    if found.state in PREPARED:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
