"""Fencing: an open transaction is aborted under a higher epoch than that of its producer."""

from __future__ import annotations

from ottla.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.model.limits import INT16_MAX
from ottla.txns.states import TxnState
from ottla.txns.transaction import EPOCH_BUMPS_SINCE, TransactionMetadata
from ottla.txns.view import TxnsView


def fenced(found: TransactionMetadata, view: TxnsView, now_ms: int) -> TransactionMetadata:
    """Return the transaction in PrepareAbort with a bumped epoch."""
    assert found.state == TxnState.ONGOING, f"{found.transactional_id}: an abort in {found.state.text}"
    version = view.version()
    bumps = version >= EPOCH_BUMPS_SINCE
    return found.to(
        TxnState.PREPARE_ABORT,
        now_ms,
        epoch=min(found.epoch + 1, INT16_MAX),
        last_epoch=NO_PRODUCER_EPOCH,
        next_producer_id=view.next_producer_id() if bumps and found.exhausted else NO_PRODUCER_ID,
        client_version=version if bumps else 0,
    )
