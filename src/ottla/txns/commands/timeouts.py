"""Periodic commands: abort transactions that exceed their timeout, and forget unused transactional ids."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer
from ottla.model.limits import TRANSACTIONS_PER_SWEEP_MAX
from ottla.model.settings.transactions import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)
from ottla.txns.commands.fence import fenced
from ottla.txns.effects import Sweeping, markers_of
from ottla.txns.states import AT_REST
from ottla.txns.transaction import TransactionMetadata, tombstone
from ottla.txns.view import TxnsView

_TIMEOUTS = "timeouts"
_EXPIRY = "expiry"


@dataclass(frozen=True, slots=True)
class AbortTimedOut:
    """Runs every `transaction.abort.timed.out.transaction.cleanup.interval.ms` while any transaction is open."""

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, None]:
        ongoing = [view.state.transactions[id] for id in view.state.ongoing]
        late = [each for each in ongoing if _deadline_ms(view, each) < now_ms]
        aborting = [fenced(each, view, now_ms) for each in late[:TRANSACTIONS_PER_SWEEP_MAX]]
        more = len(late) > len(aborting)
        if len(ongoing) == len(aborting):
            timers, notes = [], [Sweeping(False)]
        else:
            timers, notes = [Timer(_TIMEOUTS, now_ms, self) if more else first_look(view, now_ms)], []
        return Result(
            records=[view.entry(each) for each in aborting],
            effects=[markers_of(each) for each in aborting],
            timers=timers,
            notes=notes,
        )


@dataclass(frozen=True, slots=True)
class ForgetUnused:
    """Runs every `transaction.remove.expired.transaction.cleanup.interval.ms`."""

    def decide(self, view: TxnsView, now_ms: int) -> Result[Entry, None]:
        before_ms = now_ms - view.setting(TRANSACTIONAL_ID_EXPIRATION_MS)
        unused = [
            each.transactional_id
            for each in view.state.transactions.values()
            if each.state in AT_REST and each.updated_ms <= before_ms
        ]
        timer = next_expiry(view, now_ms)
        if len(unused) > TRANSACTIONS_PER_SWEEP_MAX:
            timer = Timer(_EXPIRY, now_ms, self)
        return Result(records=[tombstone(id) for id in unused[:TRANSACTIONS_PER_SWEEP_MAX]], timers=[timer])


def _deadline_ms(view: TxnsView, transaction: TransactionMetadata) -> int:
    """Return when a transaction times out. Its start is stored as wall-clock time, so later changes of the clock are
    added.
    """
    set_ms = view.state.clock_set_ms.get(transaction.transactional_id, 0)
    return transaction.started_ms + set_ms + transaction.timeout_ms


def first_look(view: TxnsView, now_ms: int) -> Timer:
    """Return the timer of the next check of open transactions."""
    interval_ms = view.setting(TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS)
    return Timer(_TIMEOUTS, now_ms + interval_ms, AbortTimedOut())


def next_expiry(view: TxnsView, now_ms: int) -> Timer:
    interval_ms = view.setting(TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS)
    return Timer(_EXPIRY, now_ms + interval_ms, ForgetUnused())
