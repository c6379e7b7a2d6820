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
from ottla.txns.transaction import TransactionMetadata, entry_of

T = TypeVar("T")


class TransactionsState:
    """All transactions of one partition of `__transaction_state`; only `apply` and `note` of the machine change it."""

    __slots__ = ("clock_set_ms", "ongoing", "sweeping", "transactions")

    def __init__(self) -> None:
        self.transactions: dict[str, TransactionMetadata] = {}
        self.ongoing: dict[str, None] = {}  # the ids of transactions that may time out
        self.sweeping = False  # whether a timer checks them
        self.clock_set_ms: dict[str, int] = {}  # ongoing transaction → by how much the clock was set since it began


@dataclass(frozen=True, slots=True)
class TxnsView:
    """The state, the present settings, the finalised transaction version, and a source of producer ids."""

    state: TransactionsState
    broker: Callable[[], Config]
    version: Callable[[], int]
    next_producer_id: Callable[[], ProducerId]  # raises ApiError if none is available now

    def setting(self, setting: Setting[T]) -> T:
        return self.broker()[setting]

    def entry(self, transaction: TransactionMetadata) -> Entry:
        return entry_of(transaction, self.version())

    def known(self, transactional_id: str) -> TransactionMetadata:
        """Return the transaction of an id; raises the ApiError of Kafka if the id is empty or has no producer yet."""
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        found = self.state.transactions.get(transactional_id)
        if found is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return found
