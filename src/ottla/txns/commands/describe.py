"""Describe and ListAll: what admin clients ask about transactions. They change nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.txns.states import TxnState
from ottla.txns.transaction import TransactionMetadata
from ottla.txns.view import TxnsView


@dataclass(frozen=True, slots=True)
class Describe:
    transactional_id: str

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, TransactionMetadata]:
        found = view.state.transactions.get(self.transactional_id)
        if found is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return Result(reply=found)


@dataclass(frozen=True, slots=True)
class ListAll:
    """Replies with all transactions."""

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, list[TransactionMetadata]]:
        return Result(reply=list(view.state.transactions.values()))


@dataclass(frozen=True, slots=True)
class TxnFilter:
    """A filter of ListTransactions. None, or a negative duration, matches everything."""

    states: frozenset[TxnState] | None
    producer_ids: frozenset[int] | None
    longer_than_ms: int

    def includes(self, transaction: TransactionMetadata, now_ms: int) -> bool:
        return (
            (self.producer_ids is None or transaction.producer_id in self.producer_ids)
            and (self.states is None or transaction.state in self.states)
            and (self.longer_than_ms < 0 or now_ms - transaction.started_ms > self.longer_than_ms)
        )
