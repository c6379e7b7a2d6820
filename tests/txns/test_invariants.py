"""What the transaction coordinator relies on is asserted when it decides, never when it reads a journal."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.model.ids import ProducerEpoch, ProducerId, TopicPartition
from ottla.txns.effects import markers_of
from ottla.txns.states import AT_REST, NEXT, PREPARED, TxnState
from ottla.txns.transaction import TransactionMetadata, entry_of, transaction_of

HERE = (TopicPartition("t", 0),)


def transaction(state: TxnState, **more: Any) -> TransactionMetadata:
    return TransactionMetadata("id", ProducerId(7), ProducerEpoch(3), 60_000, state, **more)


@pytest.mark.parametrize("before", TxnState)
@pytest.mark.parametrize("after", TxnState)
def test_only_the_transitions_of_the_table(before: TxnState, after: TxnState) -> None:
    if after in NEXT[before]:
        assert transaction(before).to(after, 1).state == after
    else:
        with pytest.raises(AssertionError, match=f"{before.text} → {after.text}"):
            transaction(before).to(after, 1)


def test_an_outcome_stays() -> None:
    for prepared in PREPARED:
        (complete,) = NEXT[prepared]
        assert complete in AT_REST and complete.text == prepared.text.replace("Prepare", "Complete")


def test_an_epoch_does_not_fall_unless_the_producer_id_changes() -> None:
    ongoing = transaction(TxnState.ONGOING)
    with pytest.raises(AssertionError, match="3 → 2"):
        ongoing.to(TxnState.PREPARE_ABORT, 1, epoch=ProducerEpoch(2))
    assert ongoing.to(TxnState.PREPARE_ABORT, 1, epoch=ProducerEpoch(4)).epoch == 4
    assert (
        transaction(TxnState.EMPTY).to(TxnState.EMPTY, 1, producer_id=ProducerId(8), epoch=ProducerEpoch(0)).epoch == 0
    )


def test_what_is_at_rest_has_no_partitions() -> None:
    prepared = transaction(TxnState.PREPARE_COMMIT, partitions=HERE)
    with pytest.raises(AssertionError, match="with partitions"):
        prepared.to(TxnState.COMPLETE_COMMIT, 1)
    assert prepared.to(TxnState.COMPLETE_COMMIT, 1, partitions=()).partitions == ()


def test_markers_need_an_outcome() -> None:
    with pytest.raises(AssertionError, match="markers in Ongoing"):
        markers_of(transaction(TxnState.ONGOING, partitions=HERE))


@pytest.mark.parametrize("state", TxnState)
def test_whatever_a_journal_holds_is_read(state: TxnState) -> None:
    stored = entry_of(transaction(state, partitions=HERE), transaction_version=2)
    assert transaction_of(stored).state == state
