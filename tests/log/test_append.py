"""What enters the log, how it is stamped, when a segment is rolled."""

import random
from contextlib import suppress

import pytest
from tests.log.logs import NOW_MS, append, batch, check_indexes, offset_for_time, open_log, read_batches, read_records

from ottla.log.config import LogConfig
from ottla.log.files.disk import StorageError
from ottla.log.log import Origin
from ottla.log.look import dated_ahead
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import INT32_MAX
from ottla.records.batch import read_header
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record
from ottla.sim.world.disk import DiskFaults, SimDisk


def refused(config: LogConfig, records: bytearray) -> ApiError:
    """Why the log does not take it; it must be as before."""
    log = open_log(config=config)
    with pytest.raises(ApiError) as caught:
        append(log, records)
    assert (log.next_offset, log.size_bytes) == (0, 0)
    return caught.value


def test_offset_and_epoch_are_stamped_in_place() -> None:
    log = open_log()
    append(log, batch(5))
    made = batch(3)
    appended = append(log, made, epoch=9)
    assert appended == (5, 7, -1, 0, NOW_MS, False, 9, ())
    header = read_header(made)
    assert (header.base_offset, header.leader_epoch) == (5, 9)
    assert [data for _, data in read_batches(log, 5)] == [bytes(made)], "the bytes are the producer's"


def test_epochs_begin_where_their_first_batch_lies() -> None:
    log = open_log()
    for epoch in (0, 0, 3):
        append(log, batch(2), epoch=epoch)
    assert log.epochs.entries == [(0, 0), (3, 4)]
    assert log.epoch_end(0) == (0, 4) and log.epoch_end(3) == (3, 6) and log.epoch_end(2) == (0, 4)


def test_an_epoch_that_could_not_be_written_is_asked_for_again() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, batch(2), epoch=0)
    disk.faults.write_error_rate = 1.0
    with pytest.raises(StorageError):
        append(log, batch(2), epoch=4)
    disk.faults.write_error_rate = 0.0
    append(log, batch(2), epoch=4)
    assert log.epochs.entries == [(0, 0), (4, 2)]
    log.close()
    assert open_log(disk, clean=True).epochs.entries == [(0, 0), (4, 2)], "the file knows it too"


def test_a_cut_that_the_epoch_file_missed_is_made_good_at_the_close() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, batch(2), epoch=0)
    append(log, batch(2), epoch=1)
    disk.faults.write_error_rate = 1.0
    with pytest.raises(StorageError):
        log.epochs.truncate_from_end(2)
    disk.faults.write_error_rate = 0.0
    log.close()
    assert open_log(disk, clean=True).epochs.entries == [(0, 0)]


def test_wrong_bytes() -> None:
    made = batch()
    made[-1] ^= 1
    assert refused(LogConfig(), made).code == ErrorCode.CORRUPT_MESSAGE
    assert refused(LogConfig(), bytearray(10)).code == ErrorCode.INVALID_RECORD
    assert refused(LogConfig(), batch()[:-1]).code == ErrorCode.CORRUPT_MESSAGE
    assert refused(LogConfig(), batch() + batch()).code == ErrorCode.INVALID_RECORD


def test_an_incomplete_second_batch_is_ignored() -> None:
    log = open_log()
    append(log, batch() + batch()[:30])
    assert log.size_bytes == len(batch())


def test_sizes() -> None:
    made = batch(size_bytes=1_000)
    error = refused(LogConfig(max_message_bytes=len(made) - 1), made)
    assert error.code == ErrorCode.MESSAGE_TOO_LARGE and f"is {len(made)} bytes" in error.text
    error = refused(LogConfig(segment_bytes=len(made) - 1), batch(size_bytes=1_000))
    assert error.code == ErrorCode.RECORD_LIST_TOO_LARGE
    append(open_log(config=LogConfig(max_message_bytes=len(made), segment_bytes=len(made))), batch(size_bytes=1_000))


def test_a_compacted_topic_wants_keys() -> None:
    compacted = LogConfig(compact=True, delete=False)
    records = [Record(-1, NOW_MS, key, b"v") for key in (b"a", None, b"", None)]
    error = refused(compacted, build_batch(records, codec=Codec.LZ4))
    assert error.code == ErrorCode.INVALID_RECORD
    assert [found.index for found in error.record_errors] == [1, 3]
    assert error.record_errors[0].message == (
        "Compacted topic cannot accept message without key in topic partition topic-0"
    )
    assert append(open_log(config=compacted), batch(key=b"")).last_offset == 0


@pytest.mark.parametrize("deltas", [(1, 0), (0, 0)])
def test_where_records_are_looked_at_their_offsets_must_be_in_order(deltas: tuple[int, ...]) -> None:
    made = build_batch([Record(delta, NOW_MS, b"k", b"v") for delta in deltas], last_offset_delta=1)
    error = refused(LogConfig(compact=True, delete=False), made)
    assert error.code == ErrorCode.INVALID_RECORD and "offset delta" in error.text


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize(
    ("timestamps", "bad"),
    [
        ([0, 3_600_000, -3_600_000], []),
        ([0, 3_600_001], [1]),
        ([-3_600_001, 0, 3_600_001], [0, 2]),
    ],
)
def test_time_bounds(timestamps: list[int], bad: list[int], codec: Codec) -> None:
    config = LogConfig(timestamp_before_max_ms=3_600_000, timestamp_after_max_ms=3_600_000)
    base = 10 * 3_600_000
    made = build_batch([Record(-1, base + time, b"k", b"v") for time in timestamps], codec=codec)
    log = open_log(config=config)
    if not bad:
        append(log, made, now_ms=base)
        return
    with pytest.raises(ApiError) as caught:
        append(log, made, now_ms=base)
    assert caught.value.code == ErrorCode.INVALID_TIMESTAMP
    if max(timestamps) > 3_600_000 and len(timestamps) > 1:  # the header says so, and nobody looks any further
        assert not caught.value.record_errors
        assert f"the largest of the batch is {base + max(timestamps)}. The timestamp should be" in caught.value.text
        assert dated_ahead(made, read_header(made), config, base)[-1].index == bad[-1]
        return
    assert [error.index for error in caught.value.record_errors] == bad
    assert "is out of range" in caught.value.record_errors[0].message


def test_no_timestamp_is_within_every_bound() -> None:
    log = open_log(config=LogConfig(timestamp_before_max_ms=1))
    append(log, batch(timestamp=-1))
    assert log.active.max_timestamp == -1


def test_the_old_are_welcome_unless_told_otherwise() -> None:
    append(open_log(), batch(timestamp=0))


def test_log_append_time() -> None:
    log = open_log(config=LogConfig(log_append_time=True))
    appended = append(log, batch(3, timestamp=5, codec=Codec.GZIP), now_ms=NOW_MS + 7)
    assert (appended.log_append_time, appended.max_timestamp) == (NOW_MS + 7, NOW_MS + 7)
    assert {record.timestamp for record in read_records(log)} == {NOW_MS + 7}
    found = offset_for_time(log, NOW_MS, max_offset=9)
    assert found is not None and found.offset == 0


@pytest.mark.parametrize("target", list(Codec))
@pytest.mark.parametrize("source", [Codec.NONE, Codec.SNAPPY])
def test_recompression(source: Codec, target: Codec) -> None:
    log = open_log(config=LogConfig(codec=target))
    made = batch(4, codec=source, producer=7, sequence=0, step_ms=2, size_bytes=500)
    before = bytes(made)
    append(log, made)
    ((header, data),) = read_batches(log)
    assert header.codec == target
    assert (header.producer_id, header.base_sequence, header.max_timestamp) == (7, 0, NOW_MS + 6)
    assert [(r.timestamp, r.key, r.value) for r in read_records(log)] == [
        (NOW_MS + 2 * i, b"key", b"v" * 500) for i in range(4)
    ]
    if source == target:
        assert data[61:] == before[61:], "the right codec already: the payload stays"


@pytest.mark.parametrize("codec", list(Codec))
def test_producers_codec_is_kept(codec: Codec) -> None:
    log = open_log()
    append(log, batch(4, codec=codec))
    assert [header.codec for header, _ in read_batches(log)] == [codec]


def test_a_wrong_max_timestamp_is_put_right_where_records_are_read() -> None:
    """Kafka computes it from the records always; we do so where we look at them anyway."""
    log = open_log(config=LogConfig(compact=True))
    append(log, build_batch([Record(-1, NOW_MS, b"k", b"v")], max_timestamp=NOW_MS + 1_000))
    assert log.active.max_timestamp == NOW_MS


# --- rolling


def test_roll_by_size() -> None:
    size = len(batch(size_bytes=100))
    log = open_log(config=LogConfig(segment_bytes=3 * size))
    for _ in range(7):
        append(log, batch(size_bytes=100))
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert log.snapshots.offsets == [3, 6]


def test_roll_by_age_of_the_first_record() -> None:
    log = open_log(config=LogConfig(segment_ms=1_000, timestamp_after_max_ms=10_000))
    for later_ms in (0, 1_000, 1_001, 1_500, 2_001, 2_002):
        append(log, batch(timestamp=NOW_MS + later_ms))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 5]


def test_without_timestamps_the_age_of_the_segment_counts() -> None:
    log = open_log(config=LogConfig(segment_ms=1_000))
    for later_ms in (0, 1_000, 1_001, 2_001, 2_002):
        append(log, batch(timestamp=-1), now_ms=NOW_MS + later_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_jitter_rolls_earlier_and_always_the_same() -> None:
    ages = [open_log(config=LogConfig(segment_ms=1_000, segment_jitter_ms=500)).roll_ms for _ in range(2)]
    assert ages[0] == ages[1] and 500 < ages[0] <= 1_000


@pytest.mark.parametrize("index_bytes", [24, 36, 80])
def test_roll_when_an_index_is_full(index_bytes: int) -> None:
    log = open_log(config=LogConfig(index_bytes=index_bytes, index_interval_bytes=1))
    for later_ms in range(40):
        append(log, batch(timestamp=NOW_MS + later_ms))
    assert len(log.segments) > 3
    for segment in log.segments:
        assert segment.offsets.count * 8 <= index_bytes and segment.times.count * 12 <= index_bytes
    check_indexes(log)


def test_roll_before_relative_offsets_overflow() -> None:
    log = open_log()
    made = batch()
    log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.REPLICATION)
    for offset in (INT32_MAX, INT32_MAX + 1, 5 * INT32_MAX):
        made = build_batch([(b"k", b"v")], base_offset=offset, timestamp=NOW_MS)
        log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.REPLICATION)
    assert [segment.base_offset for segment in log.segments] == [0, INT32_MAX + 1, 5 * INT32_MAX]
    assert [record.offset for record in read_records(log)] == [0, INT32_MAX, INT32_MAX + 1, 5 * INT32_MAX]
    check_indexes(log)


def test_rolling_an_empty_segment_does_nothing() -> None:
    log = open_log()
    assert log.roll(NOW_MS) is log.active and len(log.segments) == 1


def test_settings_hold_from_the_next_append_on() -> None:
    log = open_log()
    append(log)
    log.configure(LogConfig(max_message_bytes=10))
    with pytest.raises(ApiError):
        append(log)


# --- several batches at once


def test_a_coordinators_batches_go_in_together() -> None:
    log = open_log(config=LogConfig(segment_bytes=150))
    append(log)
    appended = log.append(batch(2) + batch(3), leader_epoch=4, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    assert (appended.first_offset, appended.last_offset) == (1, 5)
    assert [header.base_offset for header, _ in read_batches(log)] == [0, 1, 3]


def test_all_of_them_or_none() -> None:
    log = open_log()
    append(log)
    broken = batch(3)
    broken[-1] ^= 1
    with pytest.raises(ApiError):
        log.append(batch(2) + broken, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    assert log.next_offset == 1 and [record.offset for record in read_records(log)] == [0]


def test_a_leaders_batches_keep_their_offsets_and_epochs() -> None:
    log = open_log()
    for offset, epoch in ((10, 1), (15, 3)):
        made = build_batch([(b"k", b"v")] * 2, base_offset=offset, leader_epoch=epoch, timestamp=NOW_MS)
        log.append(made, leader_epoch=99, now_ms=NOW_MS, origin=Origin.REPLICATION)
    assert [header.base_offset for header, _ in read_batches(log)] == [10, 15]
    assert log.epochs.entries == [(1, 10), (3, 15)]
    with pytest.raises(ApiError):
        log.append(batch(), leader_epoch=0, now_ms=NOW_MS, origin=Origin.REPLICATION)


# --- a full disk


def test_disk_full_and_space_again() -> None:
    disk = SimDisk(faults=DiskFaults())
    log = open_log(disk, LogConfig(segment_bytes=500, index_interval_bytes=50))
    appended = 0
    for _ in range(3):
        disk.faults.capacity_bytes = disk.used_bytes + 700
        for _ in range(30):
            with suppress(StorageError):
                append(log, batch(2, producer=7, sequence=2 * appended))
                appended += 1
        assert log.next_offset == 2 * appended
        assert [record.offset for record in read_records(log)] == list(range(2 * appended))
        disk.faults.capacity_bytes = None
    append(log, batch(2, producer=7, sequence=2 * appended))
    check_indexes(log)
    log.close()
    again = open_log(disk, log.config, clean=True)
    assert again.next_offset == 2 * appended + 2
    check_indexes(again)


@pytest.mark.parametrize("seed", range(6))
def test_failing_writes_never_leave_a_trace(seed: int) -> None:
    disk = SimDisk(random.Random(seed), DiskFaults(write_error_rate=0.3))
    disk.faults.write_error_rate = 0.0
    log = open_log(disk, LogConfig(segment_bytes=500, index_interval_bytes=50))
    disk.faults.write_error_rate = 0.3
    good = 0
    for _ in range(120):
        with suppress(StorageError):
            append(log, batch(producer=7, sequence=good))
            good += 1
    disk.faults.write_error_rate = 0.0
    assert good > 20
    assert [record.offset for record in read_records(log)] == list(range(good))
    check_indexes(log)
    assert append(open_log(disk, log.config), batch(producer=7, sequence=good)).first_offset == good
