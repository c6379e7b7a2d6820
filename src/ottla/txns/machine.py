"""The transaction coordinator's machine: the transactions of one partition of `__transaction_state`.

Each change of a transaction is one record with its whole state (see `states.py` for the transitions). After loading,
the markers of every prepared transaction are written again: which ones were written before is unknown, and writing one
twice does no harm. So a crash leaves a transaction either undecided (its producer or its timeout will end it) or
decided, with its markers soon written everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Never, TypeAlias, TypeVar

from ottla.machine.keyed import Entry, Marker
from ottla.machine.kit import ClockSet, Command, Loaded, OneByOne, Result, Timer
from ottla.model import limits
from ottla.txns.commands.timeouts import first_look, next_expiry
from ottla.txns.effects import BegunLater, LastEpoch, Sweeping, markers_of
from ottla.txns.states import PREPARED, TxnState
from ottla.txns.transaction import TransactionMetadata, transaction_of
from ottla.txns.view import TxnsView

ReplyT = TypeVar("ReplyT")
# Any command that a handler, a timer or an effect submits to the coordinator, with the type of its reply.
TxnCommand: TypeAlias = Command[TxnsView, Entry, ReplyT]


class TransactionsMachine(OneByOne):
    """The machine of one partition of `__transaction_state`."""

    def __init__(self, view: TxnsView) -> None:
        self.view = view

    def decide(self, command: TxnCommand[object] | Loaded, now_ms: int) -> Result[Entry, object]:
        if not isinstance(command, Loaded):
            return command.decide(self.view, now_ms)
        state = self.view.state
        loaded = list(islice(state.transactions.values(), command.first, command.last))
        timers: list[Timer] = []
        notes: list[object] = []
        if not command.first:
            timers.append(next_expiry(self.view, now_ms))
            if state.ongoing:
                timers.append(first_look(self.view, now_ms))
            notes.append(Sweeping(bool(state.ongoing)))
        return Result(
            timers=timers,
            notes=[*notes, *_begun_later(loaded, now_ms)],
            effects=[markers_of(each) for each in loaded if each.state in PREPARED],
        )

    def beginning(self) -> Iterator[Loaded]:
        at_once = limits.TRANSACTIONS_LOADED_AT_ONCE
        last = max(len(self.view.state.transactions) - at_once, 0)
        for first in range(0, last, at_once):
            yield Loaded(first, first + at_once)
        yield Loaded(-(-last // at_once) * at_once)

    def apply(self, record: Entry | Marker) -> Sequence[Never]:
        if isinstance(record, Marker):
            return ()  # this journal has no transactions, but WriteTxnMarkers may name any partition
        state = self.view.state
        id: str = record.key.transactional_id
        if record.value is None:
            state.transactions.pop(id, None)
            state.ongoing.pop(id, None)
            state.clock_set_ms.pop(id, None)
            return ()
        transaction = transaction_of(record)
        before = state.transactions.get(id)
        if before is not None and (before.producer_id, before.epoch) == (transaction.producer_id, transaction.epoch):
            transaction = transaction._replace(last_epoch=before.last_epoch)
        state.transactions[id] = transaction
        if transaction.state == TxnState.ONGOING:
            state.ongoing[id] = None
        else:
            state.ongoing.pop(id, None)
            state.clock_set_ms.pop(id, None)
        return ()

    def note(self, note: object) -> None:
        state = self.view.state
        if isinstance(note, LastEpoch):
            state.transactions[note.transactional_id] = state.transactions[note.transactional_id]._replace(
                last_epoch=note.epoch
            )
        elif isinstance(note, ClockSet):
            for id in state.ongoing:
                state.clock_set_ms[id] = state.clock_set_ms.get(id, 0) + note.by_ms
        elif isinstance(note, BegunLater):
            state.clock_set_ms[note.transactional_id] = note.by_ms
        else:
            assert isinstance(note, Sweeping)
            state.sweeping = note.on


def _begun_later(transactions: Iterable[TransactionMetadata], now_ms: int) -> list[BegunLater]:
    """Return notes for transactions that start in the future, because the clock was set back or another broker's clock
    is ahead. None may take longer than its timeout from now on.
    """
    return [
        BegunLater(each.transactional_id, now_ms - each.started_ms)
        for each in transactions
        if each.state == TxnState.ONGOING and each.started_ms > now_ms
    ]
