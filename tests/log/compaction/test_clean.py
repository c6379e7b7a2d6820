"""Which log is cleaned next, how far, and how fast."""

import pytest
from tests.log.compacting import Model, small

from ottla.log.compaction.schedule import Cleanable, CleanOffsets, Throttle, cleanable, dirtiest
from ottla.log.files.checkpoint import CLEANER_OFFSETS
from ottla.model.ids import TopicPartition
from ottla.sim.world.disk import SimDisk


def three_segments(model: Model) -> None:
    """Segments 0-1, 2-3, 4-5, and an empty active one at 6; 1,000 s apart."""
    for number in range(3):
        model.append([(b"k%d" % number, b"v"), (b"same", b"v")])
        model.roll()
        model.now_ms += 1_000_000


def look(model: Model, clean_offset: int | None = None, stable: int | None = None) -> Cleanable:
    stable = model.log.next_offset if stable is None else stable
    return cleanable(model.log, clean_offset, last_stable_offset=stable, now_ms=model.now_ms)


def test_everything_closed_is_dirty_at_first() -> None:
    model = Model()
    three_segments(model)
    found = look(model)
    assert found[:2] == (0, 6)
    assert found.clean_bytes == 0
    assert found.dirty_bytes == model.log.size_bytes
    assert found.ratio == 1.0
    assert found.is_due(0.5)
    assert not found.reset


def test_what_is_clean_counts_against_what_is_dirty() -> None:
    model = Model()
    three_segments(model)
    found = look(model, clean_offset=4)
    assert found.first_dirty_offset == 4
    assert found.ratio == pytest.approx(1 / 3)
    assert not found.is_due(0.5)
    assert found.is_due(0.3)
    assert look(model, clean_offset=6).dirty_bytes == 0
    assert not look(model, clean_offset=6).is_due(0.0)


def test_an_empty_log_is_never_due() -> None:
    model = Model()
    assert look(model).ratio == 0.0
    assert not look(model).is_due(0.0)


def test_only_whole_segments_below_the_last_stable_offset() -> None:
    model = Model()
    three_segments(model)
    assert [look(model, stable=stable).first_uncleanable_offset for stable in range(7)] == [0, 0, 2, 2, 4, 4, 6]


def test_young_records_wait() -> None:
    model = Model(config=small(min_compaction_lag_ms=2_500_000))
    three_segments(model)
    assert look(model).first_uncleanable_offset == 2
    model.now_ms += 10_000_000
    assert look(model).first_uncleanable_offset == 6


def test_old_records_cannot_wait() -> None:
    model = Model(config=small(max_compaction_lag_ms=1_500_000))
    three_segments(model)
    assert look(model, clean_offset=2).overdue
    assert look(model, clean_offset=2).is_due(0.99)
    assert not look(model, clean_offset=4).overdue
    assert not look(model, clean_offset=6).is_due(0.0)


@pytest.mark.parametrize(("clean_offset", "start"), [(99, 0), (1, 2)])
def test_a_checkpoint_outside_the_log_is_reset(clean_offset: int, start: int) -> None:
    model = Model()
    three_segments(model)
    model.log.advance_log_start(start)
    found = look(model, clean_offset=clean_offset)
    assert found.reset
    assert found.first_dirty_offset == start


def test_the_dirtiest_goes_first() -> None:
    def found(ratio: float, *, overdue: bool = False) -> Cleanable:
        return Cleanable(0, 1, int(1000 * (1 - ratio)), int(1000 * ratio), overdue, False)

    assert dirtiest([("a", found(0.6), 0.5), ("b", found(0.8), 0.5), ("c", found(0.9), 0.95)]) == "b"
    assert dirtiest([("a", found(0.4), 0.5), ("b", found(0.2, overdue=True), 0.5)]) == "b"
    assert dirtiest([("a", found(0.4), 0.5)]) is None
    assert dirtiest([]) is None


def test_offsets_are_kept_in_kafkas_checkpoint() -> None:
    disk = SimDisk()
    offsets = CleanOffsets(disk)
    a, b = TopicPartition("a", 0), TopicPartition("b", 3)
    assert offsets.get(a) is None
    offsets.set(a, 17)
    offsets.set(b, 5)
    offsets.saving()()
    assert disk.content(CLEANER_OFFSETS) == b"0\n2\na 0 17\nb 3 5\n"
    assert (offsets.truncate(a, 20), offsets.truncate(a, 9)) == (False, True)
    assert (offsets.drop(b), offsets.drop(b)) == (True, False)
    offsets.saving()()
    again = CleanOffsets(disk)
    assert (again.get(a), again.get(b)) == (9, None)
    disk.open(CLEANER_OFFSETS).write(0, b"?")
    assert CleanOffsets(disk).get(a) is None


def test_the_throttle_keeps_the_average() -> None:
    throttle = Throttle(1_000.0)
    assert throttle.wait_ms(500, 0.0) == 500.0
    assert throttle.wait_ms(500, 500.0) == 500.0
    assert throttle.wait_ms(100, 5_000.0) == 100.0
    assert Throttle(float("inf")).wait_ms(1 << 30, 0.0) == 0.0
