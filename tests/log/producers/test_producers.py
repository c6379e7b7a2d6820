"""Idempotent and transactional producers: Kafka's rules as tables, and what survives a snapshot."""

import time
from typing import NamedTuple

import pytest
from tests.log.logs import NOW_MS, aborted, append, batch, open_log

from ottla.log.config import LogConfig
from ottla.log.log import Log, Origin
from ottla.log.producers.producer import WrittenBatch
from ottla.log.producers.producers import Producers
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import INT16_MAX, INT32_MAX, RECALL_BATCHES_MAX
from ottla.records.batch import read_header
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.sim.world.disk import SimDisk

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
DAY_MS = 24 * 3600 * 1000


class Sent(NamedTuple):
    """A batch of producer 7: epoch, first sequence, number of records."""

    epoch: int
    sequence: int
    count: int = 1


def send(log: Log, sent: Sent, *, origin: Origin = Origin.CLIENT, transactional: bool = False):  # type: ignore[no-untyped-def]
    made = batch(sent.count, producer=7, epoch=sent.epoch, sequence=sent.sequence, transactional=transactional)
    return log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=origin)


FIVE = [Sent(0, 2 * i, 2) for i in range(6)]  # sequences 0..11; the first of them is the sixth from the end

CASES = {
    "the first sequence may be any": ([], Sent(0, 41), "ok"),
    "the next one follows": ([Sent(0, 0, 3)], Sent(0, 3), "ok"),
    "a gap": ([Sent(0, 0, 3)], Sent(0, 4), OUT_OF_ORDER),
    "the last one again": ([Sent(0, 0, 3)], Sent(0, 0, 3), "duplicate of 0"),
    "an overlap is no duplicate": ([Sent(0, 0, 3)], Sent(0, 0, 2), OUT_OF_ORDER),
    "the fifth from the end again": (FIVE, Sent(0, 2, 2), "duplicate of 2"),
    "the sixth from the end again": (FIVE, Sent(0, 0, 2), OUT_OF_ORDER),
    "two batches again as one": (FIVE, Sent(0, 8, 4), OUT_OF_ORDER),
    "a new epoch begins with 0": ([Sent(0, 5)], Sent(1, 0), "ok"),
    "a new epoch with another sequence": ([Sent(0, 5)], Sent(1, 6), OUT_OF_ORDER),
    "an old epoch": ([Sent(3, 5)], Sent(2, 6), FENCED),
    "an old epoch's duplicate": ([Sent(2, 5), Sent(3, 0)], Sent(2, 5), FENCED),
    "sequences wrap": ([Sent(0, INT32_MAX)], Sent(0, 0), "ok"),
    "within a batch, too": ([Sent(0, INT32_MAX - 1, 3)], Sent(0, 1), "ok"),
    "and are found again": ([Sent(0, INT32_MAX - 1, 3)], Sent(0, INT32_MAX - 1, 3), "duplicate of 0"),
    "0 after something else is a gap": ([Sent(0, INT32_MAX - 1)], Sent(0, 0), OUT_OF_ORDER),
    "epochs may jump": ([Sent(0, 0)], Sent(INT16_MAX, 0), "ok"),
}


@pytest.mark.parametrize("restart", [None, "clean", "crash"])
@pytest.mark.parametrize(("before", "sent", "outcome"), CASES.values(), ids=CASES.keys())
def test_sequences(before: list[Sent], sent: Sent, outcome: str | ErrorCode, restart: str | None) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for one in before:
        send(log, one)
    if restart == "clean":
        log.close()
        log = open_log(disk, clean=True)
    elif restart == "crash":
        log = open_log(disk)
    end = log.next_offset
    if isinstance(outcome, ErrorCode):
        with pytest.raises(ApiError) as refused:
            send(log, sent)
        assert refused.value.code == outcome
        assert "producer 7" in str(refused.value) and "topic-0" in str(refused.value)
        assert log.next_offset == end
    else:
        appended = send(log, sent)
        first = int(outcome.rpartition(" ")[2]) if appended.duplicate else end
        assert appended.duplicate == outcome.startswith("duplicate")
        assert (appended.first_offset, appended.last_offset) == (first, first + sent.count - 1)
        assert log.next_offset == (end if appended.duplicate else end + sent.count)


def test_a_coordinator_is_checked_for_the_epoch_only() -> None:
    log = open_log()
    send(log, Sent(1, 0))
    send(log, Sent(1, 99), origin=Origin.COORDINATOR)
    with pytest.raises(ApiError) as refused:
        send(log, Sent(0, 0), origin=Origin.COORDINATOR)
    assert refused.value.code == FENCED


def test_a_leader_is_believed() -> None:
    log = open_log()
    send(log, Sent(1, 0))
    made = batch(producer=7, epoch=0, sequence=50)
    made[0:8] = (1).to_bytes(8, "big")
    assert log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.REPLICATION).last_offset == 1


def test_a_duplicate_is_answered_with_the_original_time() -> None:
    log = open_log()
    append(log, batch(producer=7, sequence=0, timestamp=NOW_MS - 5))
    again = append(log, batch(producer=7, sequence=0, timestamp=NOW_MS + 5))
    assert (again.duplicate, again.log_append_time, again.max_timestamp) == (True, NOW_MS - 5, NOW_MS - 5)


def end(log: Log, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 1, version: int = -1) -> None:
    marker = EndTxnMarker(commit, coordinator_epoch)
    made = end_txn_batch(marker, producer_id=7, producer_epoch=epoch, timestamp=NOW_MS)
    log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR, transaction_version=version)


def test_transactions_hold_the_stable_offset() -> None:
    log = open_log()
    append(log)
    send(log, Sent(0, 0), transactional=True)
    append(log)
    assert log.first_unstable_offset == 1
    end(log, commit=False)
    assert log.first_unstable_offset == 1, "the marker is not below the high watermark yet"
    log.producers.replicated(3)
    assert log.first_unstable_offset == 1
    log.producers.replicated(4)
    assert log.first_unstable_offset is None
    assert aborted(log, 0, 4) == [(7, 1)] and aborted(log, 0, 1) == [] and aborted(log, 4, 9) == []


def test_a_plain_batch_within_a_transaction() -> None:
    log = open_log()
    send(log, Sent(0, 0), transactional=True)
    with pytest.raises(ApiError) as refused:
        send(log, Sent(0, 1))
    assert refused.value.code == ErrorCode.INVALID_TXN_STATE


def test_an_empty_transaction_leaves_no_trace() -> None:
    log = open_log()
    end(log, commit=False)
    assert log.first_unstable_offset is None and aborted(log, 0, 9) == []
    assert (send(log, Sent(0, 0)).first_offset, log.next_offset) == (1, 2)


@pytest.mark.parametrize(
    ("marker_epoch", "coordinator_epoch", "version", "code"),
    [
        (1, 5, -1, None),
        (2, 5, -1, None),
        (0, 5, -1, FENCED),
        (1, 4, -1, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (1, 5, 2, FENCED),  # from version 2 on the epoch is raised with every end
        (2, 5, 2, None),
    ],
)
def test_who_may_end_a_transaction(
    marker_epoch: int, coordinator_epoch: int, version: int, code: ErrorCode | None
) -> None:
    log = open_log()
    send(log, Sent(1, 0), transactional=True)
    end(log, commit=True, epoch=1, coordinator_epoch=5)
    send(log, Sent(1, 1), transactional=True)
    if code is None:
        end(log, commit=True, epoch=marker_epoch, coordinator_epoch=coordinator_epoch, version=version)
        return
    with pytest.raises(ApiError) as refused:
        end(log, commit=True, epoch=marker_epoch, coordinator_epoch=coordinator_epoch, version=version)
    assert refused.value.code == code


def test_a_repeated_marker_of_version_2_is_accepted() -> None:
    log = open_log()
    send(log, Sent(1, 0), transactional=True)
    end(log, commit=False, epoch=2, version=2)
    end(log, commit=False, epoch=2, version=2)
    assert aborted(log, 0, 9) == [(7, 0)]


@pytest.mark.parametrize("clean", [False, True])
def test_open_and_aborted_transactions_survive(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    send(log, Sent(0, 0), transactional=True)
    end(log, commit=False)
    log.roll(NOW_MS)
    send(log, Sent(0, 1), transactional=True)
    if clean:
        log.close()
    log = open_log(disk, clean=clean)
    log.producers.replicated(log.next_offset)
    assert log.first_unstable_offset == 2 and aborted(log, 0, 9) == [(7, 0)]
    end(log, commit=False)
    assert aborted(log, 0, 9) == [(7, 0), (7, 2)]


def test_interleaved_transactions_and_the_stable_offset_of_the_index() -> None:
    log = open_log()
    for producer in (7, 8):
        append(log, batch(producer=producer, sequence=0, transactional=True))
    end(log, commit=False)
    (entry,) = log.active.aborted.entries()
    assert entry == (7, 0, 2, 1), "producer 8 is still open from offset 1 on"


def test_expiry() -> None:
    log = open_log()
    append(log, batch(producer=7, sequence=0))
    append(log, batch(producer=8, sequence=0, transactional=True))
    assert log.expire_producers(NOW_MS + DAY_MS - 1) == 0
    assert log.expire_producers(NOW_MS + DAY_MS) == 1, "one with an open transaction stays"
    assert [state.producer_id for state in log.producer_states()] == [8]
    assert not append(log, batch(producer=7, sequence=55)).duplicate


def test_expired_producers_are_not_read_back() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, batch(producer=7, sequence=0))
    log.close()
    assert len(open_log(disk, clean=True, now_ms=NOW_MS + DAY_MS).producers) == 0


def test_forgetting_takes_a_turn_of_the_loop() -> None:
    """CPU time, at the real bounds."""
    producers, header = Producers("t-0"), read_header(batch(producer=7, sequence=0))
    most = limits.PRODUCERS_PER_PARTITION_MAX
    for number in range(most):
        producers.update(header._replace(producer_id=number), number * 7_919 % most, NOW_MS)
    for _ in range(limits.REMEMBERED_MINUTES):
        producers.minute(most)
    spent = []
    while len(producers) > most // 2:
        before = time.thread_time()
        producers._forget(producers._limit.silent(producers))
        spent.append(time.thread_time() - before)
    assert min(spent) <= 0.05


def test_a_snapshot_keeps_the_last_batch() -> None:
    producers = Producers("t-0")
    for i in range(3):
        producers.update(read_header(batch(2, producer=7, sequence=(INT32_MAX - 2 + 2 * i) & INT32_MAX)), 2 * i, NOW_MS)
    again = Producers("t-0")
    again.restore(producers.snapshot(), NOW_MS, DAY_MS)
    state = again.get(7)
    assert state is not None and state.batches == [WrittenBatch(1, 2, 4, 5, NOW_MS)]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 2000])
def test_the_last_five_batches_are_known_again(clean: bool, segment_bytes: int) -> None:
    """A snapshot has but one: the others are read back from the log, across segments, past what others wrote."""
    disk, config = SimDisk(), LogConfig(segment_bytes=segment_bytes)
    log = open_log(disk, config)
    for i in range(12):
        append(log, batch(2, producer=7, sequence=2 * i))
        append(log, batch(1, producer=8, sequence=i))
        append(log, batch(3))
    known = {state.producer_id: list(state.batches) for state in log.producers}
    assert [len(batches) for batches in known.values()] == [5, 5]
    if clean:
        log.close()
    log = open_log(disk, config, clean=clean)
    assert {state.producer_id: state.batches for state in log.producers} == known
    log.truncate_to(log.next_offset - 6, now_ms=NOW_MS)
    assert {state.producer_id: state.batches[-4:] for state in log.producers} == {
        producer_id: batches[:-1] for producer_id, batches in known.items()
    }
    assert [len(state.batches) for state in log.producers] == [5, 5]


def test_batches_of_another_epoch_or_behind_a_gap_are_not_read_back() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sent in (Sent(0, 0), Sent(0, 1), Sent(1, 0), Sent(1, 1)):
        send(log, sent)
    send(log, Sent(1, 4), origin=Origin.COORDINATOR)
    send(log, Sent(1, 5))
    log.close()
    log = open_log(disk, clean=True)
    state = log.producers.get(7)
    assert state is not None and [each.first_sequence for each in state.batches] == [4, 5]


def test_reading_back_is_bounded() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for i in range(3):
        append(log, batch(1, producer=7, sequence=i))
    for i in range(3 * RECALL_BATCHES_MAX):
        append(log, batch(1, producer=8, sequence=i))
    log.close()
    log = open_log(disk, clean=True)
    assert {state.producer_id: len(state.batches) for state in log.producers} == {7: 1, 8: 5}


def test_a_new_producers_later_batch_does_not_overtake_one_that_was_turned_away() -> None:
    """The coordinator could not be asked about sequence 0, which comes again: sequence 1 must not be first."""
    log = open_log(SimDisk())
    first = batch(1, producer=7, epoch=0, sequence=0, transactional=True)
    log.producers.note_refusal(read_header(first))
    with pytest.raises(ApiError) as refused:
        send(log, Sent(0, 1), transactional=True)
    assert refused.value.code == OUT_OF_ORDER and "0 (earliest seen sequence)" in str(refused.value)
    assert send(log, Sent(0, 0), transactional=True).first_offset == 0
    assert send(log, Sent(0, 1), transactional=True).first_offset == 1


def test_what_was_turned_away_is_forgotten_with_the_epoch() -> None:
    log = open_log(SimDisk())
    log.producers.note_refusal(read_header(batch(1, producer=7, epoch=0, sequence=3, transactional=True)))
    assert send(log, Sent(1, 9)).first_offset == 0


@pytest.mark.parametrize(
    ("before", "sent", "fits"),
    [
        ([], Sent(0, 0), True),
        ([], Sent(0, 4), False),
        ([Sent(0, 0)], Sent(0, 1), True),
        ([Sent(0, 0), None], Sent(1, 0), True),  # None: the transaction ends
        ([Sent(0, 0), None], Sent(1, 1), False),
    ],
)
def test_a_transaction_that_the_broker_adds_begins_with_0(before: list[Sent | None], sent: Sent, fits: bool) -> None:
    log = open_log(SimDisk())
    for each in before:
        if each is None:
            end(log, commit=True, epoch=1, version=2)
        else:
            send(log, each, transactional=True)
    header = read_header(batch(1, producer=7, epoch=sent.epoch, sequence=sent.sequence, transactional=True))
    if fits:
        log.producers.check_first(header, log.next_offset)
    else:
        with pytest.raises(ApiError) as refused:
            log.producers.check_first(header, log.next_offset)
        assert refused.value.code == OUT_OF_ORDER
