"""What a share partition relies on is asserted."""

from __future__ import annotations

import pytest

from ottla.shares.partition.handout import Handout
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import Ack, AckType, FetchedBatch, Rules, Want

ANNA, BERT = Want("anna", 10, 10, strict=False), Want("bert", 10, 10, strict=False)


def acquired() -> SharePartition:
    """Anna has acquired the offsets 0 to 9."""
    partition = SharePartition(0, Rules())
    partition.acquire([FetchedBatch(0, 9, True)], 0, ANNA, 0)
    return partition


def test_a_record_is_acquired_by_one_member_at_a_time() -> None:
    partition = acquired()
    (item,) = partition.ranges
    handout = Handout(BERT, partition.rules, partition.ranges, 0)
    with pytest.raises(AssertionError, match="0-9 acquired 1 is not available"):
        partition._lend(item, handout, BERT, 0)


def test_an_outcome_that_is_being_stored_gets_no_second_one() -> None:
    partition = acquired()
    (item,) = partition.ranges
    change = partition.acknowledge("anna", [Ack(0, 9, [AckType.ACCEPT])], 0)
    with pytest.raises(AssertionError, match="is not acquired"):
        partition._become(item, AckType.RELEASE, change.token, 0, [])


def test_the_start_does_not_go_back() -> None:
    partition = acquired()
    assert partition.advance(5) and not partition.advance(4)
    with pytest.raises(AssertionError, match="from 5 back to 4"):
        partition._drop_below(4)
