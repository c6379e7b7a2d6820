"""A flood of producer ids: nobody who may send a batch again is forgotten for it, and what is remembered is bounded."""

from __future__ import annotations

import pytest
from tests.log.logs import NOW_MS, append, batch, open_log

from ottla.log.append import Appended
from ottla.log.log import Log, Origin
from ottla.log.producers import producers as producers_module
from ottla.log.producers.producers import Producers
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import read_header
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.sim.world.disk import SimDisk

MOST, AT_ONCE = 20, 4
VICTIM = 7
LATER_MS = NOW_MS + 3_000_000  # what the flood claims


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for where in (limits, producers_module):
        monkeypatch.setattr(where, "PRODUCERS_PER_PARTITION_MAX", MOST)
        monkeypatch.setattr(where, "PRODUCERS_FORGOTTEN_AT_ONCE", AT_ONCE)


def write(
    log: Log, producer: int, sequence: int = 0, *, timestamp: int = NOW_MS, transactional: bool = False
) -> Appended:
    made = batch(producer=producer, sequence=sequence, timestamp=timestamp, transactional=transactional)
    return append(log, made)


def flood(log: Log, count: int, first: int = 1_000) -> int:
    """So many new producers write, dated ahead; how many were refused."""
    refused = 0
    for producer in range(first, first + count):
        try:
            write(log, producer, timestamp=LATER_MS)
        except ApiError as error:
            refused += error.code == ErrorCode.NOT_ENOUGH_REPLICAS
    return refused


def minutes(log: Log, count: int = limits.REMEMBERED_MINUTES) -> None:
    for _ in range(count):
        log.minute()


@pytest.mark.parametrize("waited", [0, limits.REMEMBERED_MINUTES - 1])
def test_a_flood_pushes_out_nobody_who_wrote_lately(waited: int) -> None:
    log = open_log()
    flood(log, 3, first=500)
    minutes(log)
    write(log, VICTIM, 0)
    sent = write(log, VICTIM, 1)
    minutes(log, waited)
    assert flood(log, 10 * MOST) == 10 * MOST - (MOST - 1), "the three silent ones made room"
    again = write(log, VICTIM, 1)
    assert again.duplicate and again.first_offset == sent.first_offset
    assert len(log.producers) == MOST


def test_those_who_are_silent_make_room_in_the_order_of_the_log() -> None:
    log = open_log()
    for producer in range(MOST):
        write(log, producer, timestamp=NOW_MS - producer)
    write(log, 0, 1)  # now it is the last one of them
    minutes(log)
    write(log, 1_000)
    assert [state.producer_id for state in log.producers] == [0, *range(AT_ONCE + 1, MOST), 1_000]


def test_an_open_transaction_is_never_forgotten() -> None:
    log = open_log()
    write(log, VICTIM, transactional=True)
    assert flood(log, MOST) == 1
    minutes(log)
    assert flood(log, 100 * MOST, first=5_000) > 0
    assert log.producers.has_transaction(VICTIM, 0)


def test_who_was_refused_begins_with_its_first_batch_when_there_is_room() -> None:
    log = open_log()
    flood(log, MOST)
    for sequence in (0, 1):
        with pytest.raises(ApiError) as refused:
            write(log, VICTIM, sequence)
        assert refused.value.code in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    minutes(log)
    with pytest.raises(ApiError):
        write(log, VICTIM, 1)
    assert not write(log, VICTIM, 0).duplicate
    assert not write(log, VICTIM, 1).duplicate


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_restart_all_have_written_lately(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    write(log, VICTIM)
    flood(log, MOST - 1)
    minutes(log)
    log.close()
    log = open_log(disk, clean=clean)
    assert flood(log, MOST, first=5_000) == MOST
    assert write(log, VICTIM).duplicate


def test_a_follower_remembers_whom_its_leader_must_not_forget() -> None:
    """It believes the log and refuses nobody. Whom the leader refused is not in there."""
    leader, follower = open_log(), Producers("t-0")
    told = 0

    def replicate() -> None:
        nonlocal told
        for state in sorted(leader.producers, key=lambda each: each.written_at):
            if state.written_at >= told:
                follower.update(read_header(batch(producer=state.producer_id, sequence=0)), state.written_at, 0)
        told = leader.next_offset

    for round_ in range(10):
        flood(leader, 3 * MOST, first=1_000 * (round_ + 1))
        replicate()
        lately = {state.producer_id for state in leader.producers}
        assert lately <= {state.producer_id for state in follower}
        assert len(follower) <= MOST + AT_ONCE
        minutes(leader)


def test_markers_are_not_refused_and_bounded_too() -> None:
    log = open_log()
    for producer in range(10 * MOST):
        made = end_txn_batch(EndTxnMarker(True, 1), producer_id=producer, producer_epoch=0, timestamp=NOW_MS)
        log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR, transaction_version=-1)
    assert len(log.producers) <= MOST + AT_ONCE


def test_a_flood_that_was_turned_away_is_forgotten_after_some_minutes() -> None:
    """Later newcomers are noted as the first ones were: none of their batches overtakes one that was refused."""
    log = open_log()
    for producer in range(MOST):
        write(log, producer)
    assert flood(log, 3 * MOST) == 3 * MOST
    with pytest.raises(ApiError):
        write(log, VICTIM + 500)  # there is no room for a note of it
    for _ in range(limits.REMEMBERED_MINUTES):
        log.minute()
        for producer in range(MOST):
            write(log, producer, log.producers.get(producer).batches[-1].last_sequence + 1)  # type: ignore[union-attr]
    with pytest.raises(ApiError):
        write(log, VICTIM + 500)
    log.expire_producers(NOW_MS + 10**12)
    with pytest.raises(ApiError) as refused:
        write(log, VICTIM + 500, 1)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, VICTIM + 500, 0).first_offset < write(log, VICTIM + 500, 1).first_offset
    for _ in range(2 * limits.REMEMBERED_MINUTES):
        log.minute()
    assert not log.producers._refused
