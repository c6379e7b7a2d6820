"""TxnsView: what a command of the transaction coordinator may read while it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ottla.machine.keyed import Entry
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerId
from ottla.model.setting import Setting
from ottla.txns.transaction import Transaction, entry_of

T = TypeVar("T")


class TransactionsState:
    """All transactions of one partition of `__transaction_state`; only `apply` and `note` of the machine change it."""

    __slots__ = ("clock_set_ms", "ongoing", "sweeping", "transactions")

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: dict[str, None] = {}  # the ids of those that may run out of time
        self.sweeping = False  # whether a timer looks after them
        self.clock_set_ms: dict[str, int] = {}  # of ongoing ones: by how much the time of day was set since they began


@dataclass(frozen=True, slots=True)
class TxnsView:
    """The state, the settings as they are now, the finalised transaction version, and where new ids come from."""

    state: TransactionsState
    broker: Callable[[], Config]
    version: Callable[[], int]
    next_producer_id: Callable[[], ProducerId]  # raises ApiError if there is none to be had now

    def setting(self, setting: Setting[T]) -> T:
        return self.broker()[setting]

    def entry(self, transaction: Transaction) -> Entry:
        return entry_of(transaction, self.version())

    def known(self, transactional_id: str) -> Transaction:
        """Raises ApiError as Kafka does for an id that nobody has begun with, or that was never given."""
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        found = self.state.transactions.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return found
