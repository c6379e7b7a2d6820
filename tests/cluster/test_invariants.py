"""What the controller relies on is asserted when it decides; a journal of another implementation may hold anything."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cluster.entities import NO_LEADER, PartitionState
from ottla.cluster.leader_election import _check
from ottla.model.ids import FIRST_LEADER_EPOCH, FIRST_PARTITION_EPOCH


def partition(*replicas: int, leader: int, isr: tuple[int, ...], elr: tuple[int, ...] = ()) -> PartitionState:
    return PartitionState(0, replicas, isr, leader, FIRST_LEADER_EPOCH, FIRST_PARTITION_EPOCH, elr=elr)


SOUND = partition(1, 2, 3, leader=1, isr=(1, 2))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"leader": 2, "isr": [2]},
        {"leader": NO_LEADER, "isr": [], "eligible_leader_replicas": [1, 2]},
        {"leader": 4, "isr": [4], "replicas": [4, 5]},
    ],
)
def test_only_replicas_lead_and_are_in_sync(fields: dict[str, Any]) -> None:
    _check(SOUND, fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"leader": 4},
        {"isr": [1, 4]},
        {"eligible_leader_replicas": [4]},
        {"replicas": [2, 3]},  # and 1 would still lead
    ],
)
def test_a_stranger_is_found(fields: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="without a replica"):
        _check(SOUND, fields)


def test_a_replica_is_in_sync_or_eligible() -> None:
    with pytest.raises(AssertionError, match="both"):
        _check(SOUND, {"eligible_leader_replicas": [2]})


def test_a_stranger_in_the_journal_may_stay() -> None:
    odd = partition(1, 2, leader=7, isr=(1, 7), elr=(1,))
    _check(odd, {"isr": [7]})
    _check(odd, {"leader": 2, "isr": [2, 7]})
    with pytest.raises(AssertionError, match="without a replica"):
        _check(odd, {"isr": [7, 8]})
