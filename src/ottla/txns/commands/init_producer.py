"""InitProducer: a producer takes over a transactional id; its former producer is fenced.
- The producer gets the next epoch, or a new producer id when the epochs of the old one are used up.
- An open transaction is aborted first; the producer repeats its request until that is done.
- A producer may send its own producer id and epoch (KIP-360): then it keeps its id with the next epoch, and a repeated
  request gets the same answer; a producer that was superseded is fenced.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from ottla.model.settings.transactions import TRANSACTION_MAX_TIMEOUT_MS
from ottla.txns.commands.fence import fenced
from ottla.txns.effects import LastEpoch, markers_of
from ottla.txns.states import PREPARED, TxnState
from ottla.txns.transaction import NO_TIME, TransactionMetadata, is_exhausted
from ottla.txns.view import TxnsView


@dataclass(frozen=True, slots=True)
class InitProducer:
    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None  # the producer id and epoch that the producer sent

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, ProducerIdentity]:
        if not 0 < self.timeout_ms <= view.setting(TRANSACTION_MAX_TIMEOUT_MS):
            raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        found = view.state.transactions.get(self.transactional_id)
        if found is None:
            found = TransactionMetadata(
                self.transactional_id, view.next_producer_id(), NO_PRODUCER_EPOCH, self.timeout_ms
            )
        if found.state in PREPARED:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if self.expected is not None and not _may_continue(found, self.expected):
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if found.state == TxnState.ONGOING:
            aborting = fenced(found, view, now_ms)
            return Result(
                records=[view.entry(aborting)],
                reply=ApiError(ErrorCode.CONCURRENT_TRANSACTIONS),
                effects=[markers_of(aborting)],
            )
        begun = self._begun(found, view, now_ms)
        return Result(
            records=[view.entry(begun)],
            notes=[LastEpoch(begun.transactional_id, begun.last_epoch)],
            reply=ProducerIdentity(begun.producer_id, begun.epoch),
        )

    def _begun(self, found: TransactionMetadata, view: TxnsView, now_ms: int) -> TransactionMetadata:
        expected = self.expected
        if found.exhausted and (expected is None or expected.epoch == found.epoch):
            producer_id, epoch = view.next_producer_id(), 0
            last_epoch = found.epoch if expected is not None else NO_PRODUCER_EPOCH
        elif expected is None:
            producer_id, epoch, last_epoch = found.producer_id, found.epoch + 1, NO_PRODUCER_EPOCH
        elif found.epoch in (NO_PRODUCER_EPOCH, expected.epoch):
            producer_id, epoch, last_epoch = found.producer_id, found.epoch + 1, found.epoch
        elif expected.epoch == found.last_epoch:
            producer_id, epoch, last_epoch = found.producer_id, found.epoch, found.last_epoch  # a repeated request
        else:
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        return found.to(
            TxnState.EMPTY,
            now_ms,
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            next_producer_id=NO_PRODUCER_ID,
            timeout_ms=self.timeout_ms,
            partitions=(),
            started_ms=NO_TIME,
        )


def _may_continue(found: TransactionMetadata, expected: ProducerIdentity) -> bool:
    """Whether the id has no state (it was lost), or the producer has its present id, or had the previous one until its
    epochs were used up.
    """
    return (
        found.epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == found.producer_id
        or (expected.producer_id == found.previous_producer_id and is_exhausted(expected.epoch))
    )
