"""The states of a transaction and the transitions between them.

    Empty ──add──▶ Ongoing ──end──▶ PrepareCommit ──markers written──▶ CompleteCommit ──add──▶ Ongoing
                          └──end──▶ PrepareAbort  ──markers written──▶ CompleteAbort  ──add──▶ Ongoing
    Empty, CompleteCommit, CompleteAbort ──a producer begins──▶ Empty
    Empty, CompleteCommit, CompleteAbort ──abort of nothing (KIP-890)──▶ PrepareAbort
    Empty, CompleteCommit, CompleteAbort ──unused for long──▶ gone (Dead)

Once a Prepare state is in the journal the outcome is decided: only the markers are missing, and the next coordinator
that loads the journal writes them. Dead and PrepareEpochFence are numbers that Kafka's tools know; a transaction here
goes from Ongoing to PrepareAbort in one step when its producer is fenced, and a dead one is a tombstone.
"""

from __future__ import annotations

from enum import IntEnum


class TxnState(IntEnum):
    """The states by their numbers in the journal."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """The name of the state in Kafka's tools."""
        return _TEXTS[self]


_TEXTS = {
    TxnState.EMPTY: "Empty",
    TxnState.ONGOING: "Ongoing",
    TxnState.PREPARE_COMMIT: "PrepareCommit",
    TxnState.PREPARE_ABORT: "PrepareAbort",
    TxnState.COMPLETE_COMMIT: "CompleteCommit",
    TxnState.COMPLETE_ABORT: "CompleteAbort",
    TxnState.DEAD: "Dead",
    TxnState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
BY_TEXT = {text: state for state, text in _TEXTS.items()}

_FROM_REST = (TxnState.EMPTY, TxnState.ONGOING, TxnState.PREPARE_ABORT)
# The transitions that a coordinator may write, Kafka's own; `Transaction.to` checks them.
NEXT: dict[TxnState, tuple[TxnState, ...]] = {
    TxnState.EMPTY: _FROM_REST,
    TxnState.ONGOING: (TxnState.ONGOING, TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT),
    TxnState.PREPARE_COMMIT: (TxnState.COMPLETE_COMMIT,),
    TxnState.PREPARE_ABORT: (TxnState.COMPLETE_ABORT,),
    TxnState.COMPLETE_COMMIT: _FROM_REST,
    TxnState.COMPLETE_ABORT: _FROM_REST,
    TxnState.DEAD: (),
    TxnState.PREPARE_EPOCH_FENCE: (TxnState.PREPARE_ABORT,),
}
# No transaction is open: the id may expire, and a new producer may take it over at once.
AT_REST = (TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)
# The outcome is decided, but not all markers are written.
PREPARED = (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)
