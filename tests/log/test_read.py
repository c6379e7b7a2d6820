"""Reading by offset, retention, cutting, durability, moving segments out and in."""

import random

import pytest
from tests.log.logs import (
    DIRECTORY,
    NOW_MS,
    append,
    batch,
    check_indexes,
    names,
    open_log,
    read_batches,
    read_records,
)

from ottla.log.closing import close_logs
from ottla.log.config import LogConfig
from ottla.log.files.names import CLEANED
from ottla.log.files.segment import Segment
from ottla.log.log import Log, Origin
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import headers
from ottla.records.build import build_batch
from ottla.sim.world.disk import Crash, SimDisk


def filled(batches: int = 10, *, disk: SimDisk | None = None, config: LogConfig | None = None, count: int = 3) -> Log:
    """`batches` of `count` records, one millisecond apart."""
    log = open_log(disk, config)
    for i in range(batches):
        append(log, batch(count, timestamp=NOW_MS + i))
    return log


def offsets(log: Log, offset: int, max_bytes: int, **options: int | bool) -> list[int]:
    """Base offsets of the whole batches in one fetch."""
    options.setdefault("max_offset", log.next_offset)
    fetched = log.read(offset, max_bytes, **options)  # type: ignore[arg-type]
    return [header.base_offset for _, header in headers(fetched.slice.read())] if fetched.slice else []


SIZE = len(batch(3))


@pytest.mark.parametrize("restart", [False, True])
def test_fetches(restart: bool) -> None:
    disk = SimDisk()
    log = filled(disk=disk)
    if restart:
        log = open_log(disk)
    assert offsets(log, 0, 3 * SIZE) == [0, 3, 6]
    assert offsets(log, 4, 2 * SIZE) == [3, 6], "from the middle of a batch the whole batch comes"
    assert offsets(log, 5, 1) == [3], "the first batch is never cut"
    assert offsets(log, 5, 1, at_least_one=False) == []
    assert offsets(log, 5, SIZE, at_least_one=False) == [3]
    assert offsets(log, 0, 1 << 20, max_offset=9) == [0, 3, 6]
    assert offsets(log, 0, 1 << 20, max_offset=8) == [0, 3], "a batch counts when all of it does"
    assert offsets(log, 6, 1 << 20, max_offset=8) == []
    assert offsets(log, 30, 1 << 20) == []
    assert log.read(0, 2 * SIZE + 5, max_offset=30).size_bytes == 2 * SIZE + 5, "the last batch may be cut"


@pytest.mark.parametrize("offset", [-1, 31, 4])
def test_out_of_range(offset: int) -> None:
    log = filled()
    log.advance_log_start(5)
    with pytest.raises(ApiError) as refused:
        log.read(offset, 1, max_offset=30)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_fetches_stay_within_a_segment() -> None:
    log = filled(config=LogConfig(segment_bytes=4 * SIZE))
    assert [segment.base_offset for segment in log.segments] == [0, 12, 24]
    assert offsets(log, 6, 1 << 20) == [6, 9]
    assert offsets(log, 12, 1 << 20) == [12, 15, 18, 21]


def test_gaps_are_skipped() -> None:
    """Compaction leaves holes within segments, at their ends, and whole empty stretches."""
    log = open_log(config=LogConfig(compact=True))
    for offset in (0, 10, 20):
        made = build_batch([(b"k", b"v")] * 2, base_offset=offset, timestamp=NOW_MS)
        log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.REPLICATION)
        if offset == 10:
            log.next_offset = 15
            log.roll(NOW_MS)
    assert offsets(log, 2, 1 << 20) == [10]
    assert offsets(log, 12, 1 << 20) == [20], "the next segment"
    assert offsets(log, 16, 1 << 20) == [20]
    assert offsets(log, 2, 1 << 20, max_offset=11) == []


@pytest.mark.parametrize("sealed", [False, True])
def test_every_offset_is_found_in_a_long_segment(sealed: bool) -> None:
    """Thousands of batches: recent ones from memory, older ones through the index and one read."""
    log = open_log(config=LogConfig(index_interval_bytes=200))
    for i in range(2_000):
        append(log, batch(1 + i % 3, timestamp=NOW_MS + i, size_bytes=(i * 37) % 100))
    expected = [header.base_offset for header, _ in read_batches(log)]
    if sealed:
        log.roll(NOW_MS)
    for offset in range(0, log.next_offset, 13):
        (first,) = offsets(log, offset, 1)
        assert first == max(base for base in expected if base <= offset)
    check_indexes(log)


def test_a_batch_larger_than_one_read() -> None:
    log = open_log()
    for _ in range(5):
        append(log, batch(size_bytes=30_000))
    log.roll(NOW_MS)
    assert [offsets(log, offset, 1) for offset in range(5)] == [[0], [1], [2], [3], [4]]


# --- retention


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


SEGMENTS = LogConfig(segment_bytes=2 * SIZE, retention_ms=10_000)  # two batches, six offsets each


def test_retention_by_time() -> None:
    log = filled(config=SEGMENTS)
    assert bases(log) == [0, 6, 12, 18, 24]
    assert log.delete_old_segments(NOW_MS + 10_001, 30) == 0, "the newest record of the first segment is one later"
    assert log.delete_old_segments(NOW_MS + 10_004, 30) == 2
    assert (bases(log), log.log_start_offset) == ([12, 18, 24], 12)
    assert log.delete_old_segments(NOW_MS + 99_999, 20) == 1, "not beyond the high watermark"
    assert log.delete_old_segments(NOW_MS + 99_999, 30) == 2
    assert (bases(log), log.log_start_offset, log.next_offset) == ([30], 30, 30)


def test_retention_by_size() -> None:
    log = filled(config=LogConfig(segment_bytes=2 * SIZE, retention_ms=-1, retention_bytes=5 * SIZE))
    assert log.delete_old_segments(NOW_MS, 30) == 2
    assert log.size_bytes == 6 * SIZE, "deleting one more would leave less than was asked for"


def test_no_retention() -> None:
    log = filled(config=LogConfig(segment_bytes=2 * SIZE, retention_ms=-1))
    assert log.delete_old_segments(10**15, 30) == 0


def test_segments_below_the_log_start_go_even_if_compacted_only() -> None:
    log = filled(config=LogConfig(segment_bytes=2 * SIZE, retention_ms=1, compact=True, delete=False))
    assert log.delete_old_segments(10**15, 30) == 0
    log.advance_log_start(13)
    assert log.delete_old_segments(10**15, 30) == 2
    assert (bases(log), log.log_start_offset) == ([12, 18, 24], 13)
    log.advance_log_start(30)
    assert log.delete_old_segments(10**15, 30) == 2 and bases(log) == [24], "the active one stays"


def test_deleted_files_wait() -> None:
    disk = SimDisk()
    log = filled(disk=disk, config=SEGMENTS)
    held = log.read(0, 100, max_offset=30).slice
    assert held is not None
    log.delete_old_segments(NOW_MS + 10_002, 30)
    deleted = [name for name in disk.list(DIRECTORY) if name.endswith(".deleted")]
    assert deleted == [name + ".deleted" for name in names(0)]
    assert len(held.read()) == SIZE, "an answer on its way is still sent"
    assert log.remove_deleted(NOW_MS + 10_003) == NOW_MS + 70_002
    assert log.remove_deleted(NOW_MS + 70_002) is None
    assert not [name for name in disk.list(DIRECTORY) if name.endswith(".deleted")]


def test_delete_records() -> None:
    log = filled(config=SEGMENTS)
    assert log.advance_log_start(7) and not log.advance_log_start(7) and not log.advance_log_start(31)
    assert log.log_start_offset == 7
    assert [record.offset for record in read_records(log)] == list(range(7, 30))
    assert log.epochs.entries == [(0, 7)]


# --- cutting


@pytest.mark.parametrize("offset", [0, 1, 3, 6, 7, 18, 29])
def test_truncate(offset: int) -> None:
    disk = SimDisk()
    log = filled(disk=disk, config=SEGMENTS)
    assert log.truncate_to(offset)
    end = offset - offset % 3
    assert log.next_offset == end
    assert [record.offset for record in read_records(log)] == list(range(end))
    append(log, batch(timestamp=NOW_MS + 99), epoch=1)
    check_indexes(log)
    again = open_log(disk, SEGMENTS)
    assert again.next_offset == end + 1
    assert again.epochs.entries == ([(0, 0), (1, end)] if end else [(1, 0)])


def test_truncate_takes_producers_back() -> None:
    log = open_log(config=LogConfig(segment_bytes=2 * SIZE))
    for i in range(10):
        append(log, batch(3, producer=7, sequence=3 * i))
    log.truncate_to(15)
    assert append(log, batch(3, producer=7, sequence=12)).duplicate
    assert append(log, batch(3, producer=7, sequence=15)).first_offset == 15


def test_truncate_beyond_the_end_or_below_the_start() -> None:
    log = filled(config=SEGMENTS)
    assert not log.truncate_to(30)
    log.delete_old_segments(NOW_MS + 10_004, 30)
    assert log.truncate_to(5)
    assert (log.log_start_offset, log.next_offset, bases(log), log.size_bytes) == (5, 5, [5], 0)


def test_start_anew() -> None:
    disk = SimDisk()
    log = filled(disk=disk, config=SEGMENTS)
    log.truncate_fully_and_start_at(100)
    assert append(log).first_offset == 100
    assert log.epochs.entries == [(0, 100)]
    assert [record.offset for record in read_records(open_log(disk, SEGMENTS))] == [100]


# --- durability


def test_flush_makes_it_last() -> None:
    disk = SimDisk()
    log = filled(disk=disk, config=SEGMENTS)
    assert (log.recovery_point, log.unflushed) == (0, 30)
    log.flush()
    assert (log.recovery_point, log.unflushed) == (30, 0)
    again = open_log(disk.crash(Crash.POWER), SEGMENTS, recovery_point=30)
    assert [record.offset for record in read_records(again)] == list(range(30))


def test_a_segment_rolled_during_a_sync_holds_the_recovery_point() -> None:
    log = filled(config=SEGMENTS)
    log.flush()
    append(log, batch(3))
    files = log.files_to_sync()
    log.roll(NOW_MS)
    for file in files:
        file.sync()
    log.mark_synced()
    assert log.recovery_point == 30, "the segment's indexes were not there yet when the sync began"
    log.flush()
    assert log.recovery_point == 33


def test_few_files_per_sync() -> None:
    disk = SimDisk()
    log = filled(disk=disk)
    log.flush()
    append(log)
    assert len(log.files_to_sync()) == 1, "one fdatasync per group of appends"


@pytest.mark.parametrize("seed", range(8))
def test_after_a_failed_sync_nothing_is_taken_for_granted(seed: int) -> None:
    """The kernel calls the pages clean after a failed fsync; a second one proves nothing by itself."""
    disk = SimDisk(random.Random(seed))
    log = filled(disk=disk, config=SEGMENTS)
    disk.faults.sync_error_rate = 1.0
    with pytest.raises(Exception, match="cannot sync"):
        log.flush()
    assert log.recovery_point == 0
    disk.faults.sync_error_rate = 0.0
    log.flush()
    again = open_log(disk.crash(Crash.POWER), SEGMENTS, recovery_point=log.recovery_point)
    assert [record.offset for record in read_records(again)] == list(range(30))
    check_indexes(again)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("others", [0, 40])
def test_a_sync_that_failed_before_a_crash_is_made_up_for_after_it(seed: int, others: int) -> None:
    """Only the life that ended knew of it; whether the next one syncs log by log or, closing many, all at once."""
    disk = SimDisk(random.Random(seed))
    log = filled(5, disk=disk, config=SEGMENTS)
    log.flush()
    for _ in range(15):
        append(log)
    point = log.recovery_point
    disk.faults.sync_error_rate = 1.0
    with pytest.raises(Exception, match="cannot sync"):
        log.flush()
    disk.faults.sync_error_rate = 0.0
    disk = disk.crash(Crash.PROCESS)
    log = open_log(disk, SEGMENTS, recovery_point=point)
    logs = [log, *(Log.open(disk, f"other-{number}", SEGMENTS, now_ms=NOW_MS) for number in range(others))]
    if others:
        close_logs(disk, logs)
    else:
        log.flush()
    assert log.recovery_point == 30
    again = open_log(disk.crash(Crash.POWER), SEGMENTS, recovery_point=log.recovery_point)
    assert [record.offset for record in read_records(again)] == list(range(30))
    check_indexes(again)


def test_after_a_crash_only_what_is_in_doubt_is_written_again() -> None:
    disk = SimDisk()
    log = filled(disk=disk)
    log.flush()
    append(log)
    disk = disk.crash(Crash.PROCESS)
    log = open_log(disk, recovery_point=30)
    written: list[tuple[str, int]] = []
    disk.on_operation = lambda what, path, size_bytes: written.append((path, size_bytes)) if what == "write" else None
    log.flush()
    assert [size for path, size in written if path.endswith(".log")] == [len(batch())]
    written.clear()
    append(log)
    log.flush()
    assert len(written) == 1, "only once"


# --- swapping segments (compaction does it)


def cleaned(log: Log) -> Segment:
    """What compaction would make of the first two segments: the batches at 0 and 9 remain."""
    segment = Segment(log.directory, 0, interval_bytes=1, now_ms=NOW_MS, suffix=CLEANED)
    for header, data in read_batches(log):
        if header.base_offset in (0, 9):
            segment.append(data, len(data), header.last_offset, header.max_timestamp)
    segment.seal()
    for file in segment.files():
        file.sync()
    return segment


def test_replace() -> None:
    disk = SimDisk()
    log = filled(disk=disk, config=SEGMENTS)
    log.replace([cleaned(log)], log.segments[:2], NOW_MS)
    assert bases(log) == [0, 12, 18, 24]
    assert [header.base_offset for header, _ in read_batches(log)][:3] == [0, 9, 12]
    check_indexes(log)
    log.close()
    again = open_log(disk, SEGMENTS, clean=True)
    assert [header.base_offset for header, _ in read_batches(again)][:3] == [0, 9, 12]


@pytest.mark.parametrize("kind", list(Crash))
@pytest.mark.parametrize("steps", range(1, 26))
def test_a_crash_anywhere_in_a_replacement(steps: int, kind: Crash) -> None:
    disk = SimDisk()
    log = filled(disk=disk, config=SEGMENTS)
    log.flush()
    new = cleaned(log)
    disk.crash_within(steps, lambda: None)
    try:
        log.replace([new], log.segments[:2], NOW_MS)
    except BaseException as error:
        assert type(error).__name__ == "HostCrashedError"  # noqa: PT017 - it is no Exception, pytest.raises would do less
    disk = disk.crash(kind)
    again = open_log(disk, SEGMENTS, recovery_point=30)
    found = [header.base_offset for header, _ in read_batches(again)]
    assert found in ([0, 9, *range(12, 30, 3)], list(range(0, 30, 3)))
    assert (again.log_start_offset, again.next_offset, again.cut_bytes) == (0, 30, 0)
    check_indexes(again)
    assert not [name for name in disk.list(DIRECTORY) if name.endswith((".swap", ".cleaned", ".deleted"))]
