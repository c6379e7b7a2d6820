"""EndTransaction: commit or abort a transaction; MarkersWritten: all its markers are written.

There are two ways to recognise a repeated EndTransaction. Without KIP-890 the epoch stays, so the state decides: the
same end of a transaction that has ended is a repetition. With KIP-890 (`client_version` 2) every end bumps the epoch,
so the epoch decides: the epoch before the present one is a repetition, the present one belongs to the next transaction.
Since such a client cannot know whether its first partition was added, it may abort a transaction without partitions.

While markers are missing, every end with KIP-890 waits, whatever its producer id and epoch: it may belong to the next
transaction, or to a producer id that is not the present one yet. Who is fenced is told so afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId, ProducerIdentity
from ottla.model.limits import INT16_MAX
from ottla.txns.effects import LastEpoch, markers_of
from ottla.txns.states import AT_REST, PREPARED, TxnState
from ottla.txns.transaction import EPOCH_BUMPS_SINCE, TransactionMetadata
from ottla.txns.view import TxnsView


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """Replies with the `ProducerIdentity` of the next transaction."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    commit: bool
    client_version: int = 0

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, ProducerIdentity]:
        found = view.known(self.transactional_id)
        bumps = self.client_version >= EPOCH_BUMPS_SINCE
        if bumps and found.state in PREPARED:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        repeated = bumps and self._is_repetition(found)
        if found.producer_id != self.producer_id and not repeated:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if found.epoch != self.epoch and not repeated:
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if repeated and found.state not in (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT):
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if found.state in PREPARED:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if found.state == TxnState.ONGOING:
            return self._prepare(found, view, now_ms)
        if found.state in AT_REST and bumps and not repeated and not self.commit:
            return self._prepare(found._replace(started_ms=now_ms), view, now_ms)
        return self._again(found, repeated or not bumps, view)

    def _is_repetition(self, found: TransactionMetadata) -> bool:
        if found.producer_id == self.producer_id:
            return found.epoch == self.epoch + 1
        overflowed = self.epoch == INT16_MAX - 1 and found.epoch == 0
        return overflowed and found.previous_producer_id == self.producer_id

    def _prepare(self, found: TransactionMetadata, view: TxnsView, now_ms: int) -> Result[Entry, ProducerIdentity]:
        state = TxnState.PREPARE_COMMIT if self.commit else TxnState.PREPARE_ABORT
        if self.client_version >= EPOCH_BUMPS_SINCE:
            prepared = found.to(
                state,
                now_ms,
                epoch=min(found.epoch + 1, INT16_MAX),
                last_epoch=found.epoch,
                next_producer_id=view.next_producer_id() if found.exhausted else NO_PRODUCER_ID,
                client_version=self.client_version,
            )
        else:
            prepared = found.to(state, now_ms, next_producer_id=NO_PRODUCER_ID, client_version=self.client_version)
        return Result(
            records=[view.entry(prepared)],
            notes=[LastEpoch(prepared.transactional_id, prepared.last_epoch)],
            effects=[markers_of(prepared)],
            reply=_next_producer(prepared),
        )

    def _again(self, found: TransactionMetadata, repeated: bool, view: TxnsView) -> Result[Entry, ProducerIdentity]:
        """Answer an EndTransaction for a transaction that has ended.

        Without KIP-890 the state alone decides, and it may be out of date: a coordinator that was suspended, and has a
        successor, knows only the transaction before. So the state is written once more and the answer waits for that
        commit, which fails if another coordinator leads.
        """
        if not repeated or found.state == TxnState.EMPTY or self.commit != (found.state == TxnState.COMPLETE_COMMIT):
            raise ApiError(ErrorCode.INVALID_TXN_STATE)
        known = [] if self.client_version >= EPOCH_BUMPS_SINCE else [view.entry(found)]
        return Result(records=known, reply=ProducerIdentity(found.producer_id, found.epoch))


def _next_producer(prepared: TransactionMetadata) -> ProducerIdentity:
    """Return the producer id and epoch of the next transaction: a new id if the epochs are used up."""
    if prepared.bumps_epochs and prepared.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdentity(prepared.next_producer_id, FIRST_PRODUCER_EPOCH)
    return ProducerIdentity(prepared.producer_id, prepared.epoch)


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """The markers that `WriteMarkers` asked for are written: complete the transaction."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, None]:
        found = view.state.transactions.get(self.transactional_id)
        if (
            found is None
            or found.state not in PREPARED
            or (found.producer_id, found.epoch) != (self.producer_id, self.epoch)
        ):
            return Result()  # the markers were reported twice
        producer = _next_producer(found)
        complete = found.to(
            TxnState.COMPLETE_COMMIT if found.state == TxnState.PREPARE_COMMIT else TxnState.COMPLETE_ABORT,
            now_ms,
            producer_id=producer.producer_id,
            epoch=producer.epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=(),
        )
        return Result(records=[view.entry(complete)], notes=[LastEpoch(found.transactional_id, found.last_epoch)])
