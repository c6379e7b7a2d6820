"""Describe and ListAll: what admins ask about transactions. They change nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.re2.match import Search
from ottla.model.re2.nodes import RegexError
from ottla.txns.states import State
from ottla.txns.transaction import Transaction
from ottla.txns.view import View


@dataclass(frozen=True, slots=True)
class Describe:
    transactional_id: str

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        found = view.state.transactions.get(self.transactional_id)
        if found is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return Result(reply=found)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters; None, or a negative duration, lets everything through."""

    states: frozenset[State] | None
    producer_ids: frozenset[int] | None
    longer_than_ms: int
    pattern: Search | None

    def includes(self, transaction: Transaction, now_ms: int) -> bool:
        return (
            (self.producer_ids is None or transaction.producer_id in self.producer_ids)
            and (self.states is None or transaction.state in self.states)
            and (self.longer_than_ms < 0 or now_ms - transaction.started_ms > self.longer_than_ms)
            and (self.pattern is None or self.pattern.matches(transaction.transactional_id))
        )


@dataclass(frozen=True, slots=True)
class ListAll:
    wanted: Wanted

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        transactions = view.state.transactions.values()
        try:
            return Result(reply=[each for each in transactions if self.wanted.includes(each, now_ms)])
        except RegexError as error:
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error
