"""Cutting the end of a log off leaves what would be there if the end had never been written, and reads little of it."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.logs import NOW_MS, append, batch, check_indexes, open_log

from ottla.log import cut, state
from ottla.log.config import LogConfig
from ottla.log.files import scan
from ottla.log.log import Log, Origin
from ottla.log.producers import marks
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.sim.world.disk import SimDisk

SMALL = LogConfig(segment_bytes=6_000, index_interval_bytes=100)


@pytest.fixture(autouse=True)
def small_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MARK_INTERVAL_BYTES", 400)
    monkeypatch.setattr(cut, "MARK_INTERVAL_BYTES", 400)


class Step(NamedTuple):
    verb: str
    producer: int
    count: int = 1


def run(plan: list[Step], into: Log) -> None:
    """The same steps lead to the same log."""
    sequences: dict[int, int] = {}
    epochs: dict[int, int] = {}
    for verb, producer, count in plan:
        epoch = epochs.get(producer, 0)
        match verb:
            case "roll":
                into.roll(NOW_MS)
            case "plain":
                append(into, batch(count, timestamp=NOW_MS - count))
            case "epoch":
                epochs[producer], sequences[producer] = epoch + 1, 0
            case "write" | "transact":
                sequence = sequences.get(producer, 0)
                state = into.producers.get(producer)
                opened = state is not None and state.txn_first_offset >= 0
                made = batch(
                    count, producer=producer, epoch=epoch, sequence=sequence, transactional=opened or verb != "write"
                )
                append(into, made)
                sequences[producer] = sequence + count
            case "commit" | "abort":
                marker = EndTxnMarker(verb == "commit", into.next_offset)
                made = end_txn_batch(marker, producer_id=producer, producer_epoch=epoch, timestamp=NOW_MS)
                into.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)


def told(of: Log) -> object:
    """Everything that is known of producers, transactions and times."""
    producers = {
        each.producer_id: (
            each.epoch,
            each.coordinator_epoch,
            each.last_timestamp,
            each.txn_first_offset,
            list(each.batches),
        )
        for each in of.producers
    }
    return (
        of.next_offset,
        of.first_unstable_offset,
        producers,
        [segment.aborted.entries() for segment in of.segments if segment.aborted.count],
        [segment.max_timestamp for segment in of.segments if segment.size_bytes],
        of.epochs.entries,
    )


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(("plain", "plain", "write", "write", "write", "transact", "abort", "commit", "epoch")),
        st.integers(0, 3),
        st.integers(1, 3),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps, steps, steps, st.booleans(), st.booleans())
def test_a_cut_is_as_if_the_end_had_never_been_written(
    kept: list[Step], cut_off: list[Step], more: list[Step], roll: bool, twice: bool
) -> None:
    ours, theirs = open_log(config=SMALL), open_log(config=SMALL)
    run(kept, theirs)
    middle = theirs.next_offset
    run(kept + ([Step("roll", 0)] if roll else []) + cut_off, ours)
    ours.truncate_to(middle, now_ms=NOW_MS)
    if twice:
        run([Step("write", 9), *(step._replace(producer=9) for step in more)], ours)
        ours.truncate_to(middle, now_ms=NOW_MS)
    assert told(ours) == told(theirs)
    check_indexes(ours)


@settings(max_examples=60, deadline=None)
@given(steps, steps)
def test_what_a_worker_finds_is_the_same(kept: list[Step], cut_off: list[Step]) -> None:
    """Without a mark, from the last snapshot on; what is prepared and what is found on the way are equal."""
    ours, theirs, prepared = (open_log(config=SMALL) for _ in range(3))
    run(kept, theirs)
    middle = theirs.next_offset
    for each in (ours, prepared):
        run(kept + cut_off, each)
        each.producers._marks.clear()
    ours.truncate_to(middle, now_ms=NOW_MS)
    prepared.truncate_to(middle, now_ms=NOW_MS, producers=cut.producers_at(prepared, middle, NOW_MS))
    assert told(ours) == told(prepared) == told(theirs)


def test_a_worker_that_meets_a_damaged_snapshot_changes_nothing() -> None:
    log = open_log(config=SMALL)
    run([Step("write", 1), Step("roll", 0), Step("write", 1), Step("roll", 0), Step("write", 1), Step("write", 1)], log)
    log.producers._marks.clear()
    damaged, middle = log.bases[-1], log.next_offset - 1
    snapshot = log.snapshots.file(damaged)
    assert snapshot is not None
    snapshot.write(8, b"\xff")
    before = list(log.snapshots.offsets), log.directory.list()
    found = cut.producers_at(log, middle, NOW_MS)
    assert (log.snapshots.offsets, log.directory.list()) == before and found.damaged == [damaged]
    log.truncate_to(middle, now_ms=NOW_MS, producers=found)
    assert damaged not in log.snapshots.offsets


def read_bytes(of: Log, offset: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """What is read of the log file when it is cut at `offset`."""
    seen = [0]

    def counted(file, position: int, size_bytes: int, original=scan._read):  # type: ignore[no-untyped-def]
        data = original(file, position, size_bytes)
        seen[0] += len(data)
        return data

    monkeypatch.setattr(scan, "_read", counted)
    monkeypatch.setattr(scan.scan, "__kwdefaults__", {"read_bytes": 200})
    of.truncate_to(offset, now_ms=NOW_MS)
    return seen[0]


@pytest.mark.parametrize("plain", [False, True])
def test_a_cut_reads_a_bounded_part_of_the_log(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where few of the batches are producers', and the mark before the cut is far away."""
    made = open_log(config=LogConfig(index_interval_bytes=100))
    run([Step("plain" if plain and i > 50 else "write", i % 3) for i in range(1_000)], made)
    assert made.size_bytes > 60_000
    end = made.next_offset
    assert not cut.is_long(made, end - 1)
    assert read_bytes(made, end - 1, monkeypatch) < 3_000
    assert made.next_offset == end - 1 and len(made.producers) == 3


def test_without_marks_it_would_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: the test above finds it. (The simulator does not: its logs are short, and reading takes no time.)"""
    monkeypatch.setattr(state, "MARK_INTERVAL_BYTES", 1 << 40)
    with pytest.raises(AssertionError):
        test_a_cut_reads_a_bounded_part_of_the_log(False, monkeypatch)


def test_times_that_never_grow_do_not_make_a_cut_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_log(config=LogConfig(index_interval_bytes=100))
    append(made, batch(timestamp=NOW_MS + 100))
    for _ in range(1_000):
        append(made)
    assert read_bytes(made, 900, monkeypatch) < 3_000
    assert made.active.max_timestamp == NOW_MS + 100


def test_a_deep_cut_is_known_to_be_long() -> None:
    made = open_log(config=LogConfig(index_interval_bytes=100))
    run([Step("write", i % 3) for i in range(2_000)], made)
    assert cut.is_long(made, 1_000) and not cut.is_long(made, 1_990) and not cut.is_long(made, 2_000)
    assert not cut.is_long(made, 2), "what is near the last snapshot is read in a moment"


def test_marks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MARKED_STATES_MAX", 20)
    made = open_log(config=LogConfig(index_interval_bytes=100))
    run([Step("write", i % 40) for i in range(2_000)], made)
    kept = made.producers._marks._marks
    assert len(kept) <= marks.MARKS_MAX and sum(len(mark.before) for mark in kept[:-1]) <= 20


def test_compaction_ends_what_marks_below_are_good_for() -> None:
    made = open_log(config=SMALL)
    run([Step("write", i % 3) for i in range(75)], made)
    base = made.active.base_offset
    assert made.producers.has_mark(base - 1, 0)
    made.producers.forget_marks_below(base)
    assert not made.producers.has_mark(base - 1, 0) and made.producers.has_mark(base, 0)


def test_a_crash_after_a_cut_brings_nothing_back() -> None:
    disk = SimDisk()
    made = open_log(disk, SMALL)
    run([Step("transact", i % 3) for i in range(60)], made)
    made.truncate_to(31, now_ms=NOW_MS)
    expected = told(made)
    made.flush()
    assert told(open_log(disk, SMALL)) == expected
