"""Compaction, by example: what stays, what goes and when, for every kind of record."""

from collections.abc import Generator

import pytest
from tests.log.compacting import NAME, Model, compact_now, small
from tests.log.logs import aborted

from ottla.log.compaction.compact import Cleaned, CompactionError
from ottla.log.files.disk import StorageError
from ottla.log.files.txn_index import AbortedIndex, AbortedTxn
from ottla.records.compress import Codec
from ottla.sim.world.disk import Crash


def keys_left(model: Model) -> list[bytes | None]:
    return [record.key for record in model.records()]


def finished(work: Generator[int, None, Cleaned]) -> Cleaned:
    while True:
        try:
            next(work)
        except StopIteration as done:
            cleaned: Cleaned = done.value
            return cleaned


def fill(model: Model, count: int, keys: int = 3) -> None:
    for number in range(count):
        model.append([(b"k%d" % (number % keys), b"v%d" % number)])


def test_the_latest_of_each_key_stays_with_its_offset() -> None:
    model = Model()
    fill(model, 30)
    model.roll()
    before = model.log.next_offset
    model.compact()
    model.check_clean()
    assert [record.offset for record in model.records()] == [27, 28, 29]
    assert model.log.next_offset == before
    assert model.clean_offset == 30
    assert len(model.log.segments) == 6, "grouped by what they were"
    model.append([(b"k0", b"again")])
    model.roll()
    model.compact()
    model.check_clean()
    assert len(model.log.segments) == 2, "small segments are merged"


def test_the_active_segment_is_left_alone() -> None:
    model = Model()
    fill(model, 9)
    model.roll()
    for _ in range(3):
        model.append([(b"k0", b"new")])
    model.compact()
    model.check_clean()
    assert [record.offset for record in model.records()] == [6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_lose_records_but_not_their_frame(codec: Codec) -> None:
    model = Model()
    model.append([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")], codec=codec)
    model.append([(b"b", b"2")], codec=codec)
    model.roll()
    model.compact()
    model.check_clean()
    (_, first), (_, _) = model.batches()
    assert (first.base_offset, first.last_offset, first.count) == (0, 2, 2)
    assert first.codec is codec
    # Reading at an offset that is gone gives the batch that held it.
    assert model.log.read(1, 1_000, max_offset=4).slice is not None


def test_tombstones_outlive_their_first_round_and_go_after_the_horizon() -> None:
    model = Model()
    model.append([(b"a", b"1"), (b"b", b"1")])
    model.append([(b"a", None), (b"c", b"1")])
    model.roll()
    model.compact()
    tombstone = model.records()[1]
    assert (tombstone.key, tombstone.value, tombstone.offset) == (b"a", None, 2)
    headers = [header for _, header in model.batches()]
    assert [header.has_delete_horizon for header in headers] == [False, True]
    assert headers[1].delete_horizon_ms == model.now_ms + 1_000
    for wait_ms, there in ((500, True), (600, False)):
        model.now_ms += wait_ms
        model.append([(b"d", b"%d" % wait_ms)])
        model.roll()
        model.compact()
        model.check_clean()
        assert (b"a" in keys_left(model)) is there
    # The horizon stays on the batch whose other record lives on, with its timestamp unharmed.
    assert [header.has_delete_horizon for _, header in model.batches()] == [False, True, False]


def test_records_without_a_key_go() -> None:
    model = Model(config=small(compact=False))
    model.append([(None, b"old"), (b"a", b"1")])
    model.roll()
    model.log.configure(small())
    compaction = model.compact()
    assert keys_left(model) == [b"a"]
    assert compaction.tally.keyless == 1


def test_a_round_begins_without_a_look_at_what_was_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be hundreds of thousands, and it begins on the loop: `build_map` reads them, some at a time."""
    model = Model()
    for _ in range(50):
        model.append([(b"a", b"aborted")], producer_id=7, transactional=True)
        model.end(7, commit=False)
    model.roll()
    asked: list[int] = []
    honest = AbortedIndex.entries

    def counted(self: AbortedIndex, first: int = 0, end: int | None = None) -> list[AbortedTxn]:
        found = honest(self, first, end)
        asked.append(len(found))
        return found

    monkeypatch.setattr(AbortedIndex, "entries", counted)
    compaction = model.compaction()
    assert asked == []
    assert compact_now(compaction, model.now_ms)
    assert sum(asked) == 50 and max(asked) < 50
    model.check_clean()


def test_aborted_data_goes_at_once_and_its_marker_last() -> None:
    model = Model()
    model.append([(b"a", b"kept")])
    model.append([(b"a", b"aborted")], producer_id=7, transactional=True)
    model.append([(b"b", b"aborted")], producer_id=7, transactional=True)
    model.end(7, commit=False)
    model.append([(b"c", b"1")], producer_id=7, transactional=True)
    model.end(7, commit=True)
    model.roll()
    assert aborted(model.log, 0, 100) == [(7, 1)]
    seen = []
    for _ in range(4):
        model.compact()
        model.check_clean()
        seen.append([(header.base_offset, header.is_control, header.count) for _, header in model.batches()])
        assert aborted(model.log, 0, 100) == ([(7, 1)] if len(seen) == 1 else [])
        model.now_ms += 1_100
        model.append([(b"d", b"x")])
        model.roll()
    # The abort marker: kept while its data was still met, then given a horizon, then gone. The commit marker stays, its
    # data lives.
    assert [[entry[0] for entry in batches if entry[1]] for batches in seen] == [[3, 5], [3, 5], [5], [5]]


def test_an_open_transaction_bounds_the_round() -> None:
    model = Model()
    fill(model, 6)
    model.roll()
    model.append([(b"k0", b"open")], producer_id=7, transactional=True)
    model.roll()
    fill(model, 6)
    model.roll()
    model.compact()
    model.check_clean()
    assert model.clean_offset == 6
    model.end(7, commit=True)
    model.roll()
    model.compact()
    model.check_clean()
    assert model.clean_offset == model.log.next_offset


def test_the_last_batch_of_a_producer_stays_as_an_empty_one() -> None:
    model = Model()
    model.append([(b"a", b"1"), (b"b", b"1")], producer_id=5)
    model.append([(b"a", b"2"), (b"b", b"2")], producer_id=5)
    model.append([(b"a", b"3"), (b"b", b"3")])
    model.roll()
    model.compact()
    model.check_clean()
    found = [
        (header.producer_id, header.base_offset, header.last_offset, header.count) for _, header in model.batches()
    ]
    assert found == [(5, 2, 3, 0), (-1, 4, 5, 2)]
    # Its sequence survives even a recovery that has no snapshot to begin with.
    model.log.flush()
    for path in [path for path in model.disk.paths() if path.endswith(".snapshot")]:
        model.disk.remove(path)
    model.reopen(model.disk)
    state = model.log.producers.get(5)
    assert state is not None
    assert state.last_sequence == 3
    model.append([(b"a", b"4")], producer_id=5)


def test_the_last_batch_of_the_round_stays_so_that_its_end_is_known() -> None:
    model = Model()
    model.append([(b"a", b"1")])
    model.append([(b"b", None)])
    model.roll()
    model.compact()
    model.now_ms += 2_000
    model.append([(b"a", b"2")])
    model.roll()
    model.compact()
    model.now_ms += 2_000
    model.append([(b"a", None)])
    model.roll()
    model.compact()
    model.now_ms += 2_000
    model.log.roll(model.now_ms)
    model.clean_offset = 0
    model.compact()
    assert [(header.base_offset, header.count) for _, header in model.batches()] == [(3, 0)]


def test_a_small_map_takes_several_rounds() -> None:
    model = Model()
    fill(model, 200, keys=120)
    model.roll()
    rounds = 0
    while model.clean_offset < 200:
        before = model.clean_offset
        model.compact(budget_bytes=0)
        model.check()
        assert model.clean_offset > before
        rounds += 1
    assert rounds > 2
    model.compact()
    assert len(model.records()) == 120


def test_a_map_too_small_for_one_batch_is_said() -> None:
    model = Model(config=small(segment_bytes=10_000))
    model.append([(b"%d" % number, b"") for number in range(60)])
    model.roll()
    with pytest.raises(CompactionError, match="too small"):
        model.compact(budget_bytes=0)


def test_groups_respect_the_segment_size() -> None:
    model = Model()
    for number in range(40):
        model.append([(b"key%d" % number, bytes(100))])
    model.roll()
    compaction = model.compaction()
    for _ in compaction.build_map():
        pass
    groups = compaction.groups()
    assert [segment for group in groups for segment in group] == model.log.segments[:-1]
    assert all(sum(segment.size_bytes for segment in group) <= 600 for group in groups)
    model.log.configure(small(segment_bytes=100_000))
    compaction = model.compaction()
    for _ in compaction.build_map():
        pass
    assert len(compaction.groups()) == 1


def test_damage_is_reported_and_changes_nothing() -> None:
    model = Model()
    fill(model, 30)
    model.roll()
    before = model.records()
    segment = model.log.segments[1].file
    model.disk.open(segment.path).write(100, b"\xff\xff")
    with pytest.raises(CompactionError, match="position 76"):
        model.compact()
    assert not [path for path in model.disk.paths() if ".cleaned" in path or ".swap" in path]
    segment.write(100, b"??")
    assert len(before) == 30


def test_giving_up_removes_what_was_written() -> None:
    model = Model()
    fill(model, 30)
    model.roll()
    compaction = model.compaction()
    assert sum(compaction.build_map()) == compaction.map_bytes_read > 0
    work = compaction.rewrite(compaction.groups()[0])
    assert next(work) > 0
    assert [path for path in model.disk.paths() if ".cleaned" in path]
    work.close()
    assert not [path for path in model.disk.paths() if ".cleaned" in path]
    model.check()


def test_a_log_that_changed_meanwhile_is_not_touched() -> None:
    for change in ("truncate", "retire"):
        model = Model()
        fill(model, 30)
        model.roll()
        compaction = model.compaction()
        for _ in compaction.build_map():
            pass
        group = compaction.groups()[0]
        cleaned = finished(compaction.rewrite(group))
        if change == "truncate":
            model.log.truncate_to(group[-1].base_offset + 1)
        else:
            model.log.advance_log_start(group[0].base_offset + 10)
            assert model.log.delete_old_segments(model.now_ms, 100)
        segments = list(model.log.segments)
        assert not compaction.swap(cleaned, model.now_ms)
        assert model.log.segments == segments
        assert not [path for path in model.disk.paths() if ".cleaned" in path]


def test_a_swap_whose_sync_fails_is_undone() -> None:
    """Left as it was, the next start after a crash would put it over segments that were written since."""
    model = Model()
    fill(model, 60)
    model.roll()
    compaction = model.compaction()
    for _ in compaction.build_map():
        pass
    cleaned = finished(compaction.rewrite(compaction.groups()[-1]))
    model.disk.faults.sync_error_rate = 1.0
    with pytest.raises(StorageError):
        compaction.swap(cleaned, model.now_ms)
    model.disk.faults.sync_error_rate = 0.0
    assert not [path for path in model.disk.paths() if path.endswith((".cleaned", ".swap"))]
    model.compact()
    fill(model, 10)
    model.reopen(model.disk.crash(Crash.PROCESS))
    model.check()


def test_readers_of_the_old_segments_are_not_disturbed() -> None:
    model = Model(config=small(file_delete_delay_ms=60_000))
    fill(model, 30)
    model.roll()
    fetched = model.log.read(0, 10_000, max_offset=30)
    assert fetched.slice is not None
    before = fetched.slice.read()
    compaction = model.compact()
    assert fetched.slice.read() == before
    assert compaction.tally.bytes_written < compaction.tally.bytes_read
    assert model.log.remove_deleted(model.now_ms) == model.now_ms + 60_000
    assert [path for path in model.disk.paths() if path.endswith(".log.deleted")]
    model.log.remove_deleted(model.now_ms + 60_000)
    assert not [path for path in model.disk.paths() if path.endswith(".deleted")]


def test_a_leftover_of_an_earlier_try_is_not_appended_to() -> None:
    model = Model()
    fill(model, 12)
    model.roll()
    model.disk.open(f"{NAME}/00000000000000000000.log.cleaned", create=True).append(b"leftover")
    model.compact()
    model.check_clean()
