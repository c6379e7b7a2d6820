"""The leader's view: watermarks, epochs, isolation, durability before the acknowledgement."""

import random

import pytest
from tests.log.logs import NOW_MS, batch, open_log, read_records
from tests.support.neighbours import ALONE

from ottla.log.config import LogConfig
from ottla.log.log import Origin
from ottla.log.lookup import TimeOffset
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import headers
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.replica.partition import READ_COMMITTED, Partition
from ottla.replica.terms import sole
from ottla.sim.world.disk import Crash, DiskFaults, SimDisk

DURABLE = LogConfig(fsync_before_ack=True)


def make(config: LogConfig | None = None, disk: SimDisk | None = None, epoch: int = 3) -> Partition:
    return Partition("topic", 0, open_log(disk, config), neighbours=ALONE, leader_epoch=epoch)


def fill(partition: Partition, batches: int = 4) -> Partition:
    for i in range(batches):
        partition.append(batch(2, timestamp=NOW_MS + i), now_ms=NOW_MS)
    return partition


def fetched(partition: Partition, offset: int, **options: int) -> list[int]:
    found = partition.fetch(offset, 1 << 20, **options)
    return [header.base_offset for _, header in headers(found.records.read())] if found.records else []


def code(call, *args, **options) -> ErrorCode:  # type: ignore[no-untyped-def]
    with pytest.raises(ApiError) as refused:
        call(*args, **options)
    return refused.value.code


def test_what_is_appended_counts_at_once() -> None:
    partition = fill(make())
    assert (partition.high_watermark, partition.last_stable_offset) == (8, 8)
    assert fetched(partition, 3) == [2, 4, 6]
    answer = partition.fetch(8, 100)
    assert (answer.records, answer.high_watermark, answer.log_start_offset, answer.diverging) == (None, 8, 0, None)
    assert not partition.needs_sync


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, None), (3, None), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_leader_epochs(epoch: int, expected: ErrorCode | None) -> None:
    partition = fill(make())
    calls = [
        lambda: partition.fetch(0, 100, current_leader_epoch=epoch),
        lambda: partition.list_offset(-1, current_leader_epoch=epoch),
        lambda: partition.epoch_end_offset(3, current_leader_epoch=epoch),
    ]
    for call in calls:
        if expected is None:
            call()
        else:
            assert code(call) == expected
    if expected is not None:
        assert code(partition.append, batch(), now_ms=NOW_MS, leader_epoch=epoch) == expected


def test_out_of_range() -> None:
    partition = fill(make())
    assert code(partition.fetch, 9, 100) == ErrorCode.OFFSET_OUT_OF_RANGE
    partition.delete_records(3)
    assert code(partition.fetch, 2, 100) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_list_offsets() -> None:
    partition = make()
    assert partition.list_offset(-1) == TimeOffset(0, -1, 3)
    assert partition.list_offset(-2) == TimeOffset(0, -1, 3)
    assert partition.list_offset(-3) is None and partition.list_offset(NOW_MS) is None
    fill(partition)
    partition.delete_records(1)
    assert partition.list_offset(-1) == TimeOffset(8, -1, 3)
    assert partition.list_offset(-2) == partition.list_offset(-4) == TimeOffset(1, -1, 3)
    assert partition.list_offset(-3) == TimeOffset(6, NOW_MS + 3, 3)
    assert partition.list_offset(-5) == partition.list_offset(-6) == TimeOffset(-1, -1, -1)
    assert partition.list_offset(NOW_MS + 2) == TimeOffset(4, NOW_MS + 2, 3)
    assert partition.list_offset(0) == TimeOffset(1, NOW_MS, 3)
    assert partition.list_offset(NOW_MS + 4) is None
    assert code(partition.list_offset, -7) == ErrorCode.UNSUPPORTED_VERSION


def test_epochs_and_divergence() -> None:
    partition = fill(make(epoch=1), 2)
    partition.lead(sole(0, 4), NOW_MS)
    fill(partition, 1)
    assert partition.epoch_end_offset(1) == (1, 4)
    assert partition.epoch_end_offset(3) == (1, 4)
    assert partition.epoch_end_offset(4) == (4, 6)
    assert partition.epoch_end_offset(5) == (-1, -1)
    assert partition.fetch(4, 100, last_fetched_epoch=1).diverging is None
    diverged = partition.fetch(6, 100, last_fetched_epoch=1)
    assert (diverged.diverging, diverged.records) == ((1, 4), None)
    assert partition.fetch(4, 100, last_fetched_epoch=3).diverging == (1, 4)
    assert code(partition.fetch, 4, 100, last_fetched_epoch=9) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_older_epoch_never_returns() -> None:
    partition = make(epoch=5)
    partition.lead(sole(0, 2), NOW_MS)
    assert partition.leader_epoch == 5


def test_read_committed() -> None:
    partition = fill(make(), 1)
    partition.append(batch(producer=7, sequence=0, transactional=True), now_ms=NOW_MS)
    fill(partition, 1)
    assert partition.last_stable_offset == 2
    assert fetched(partition, 0) == [0, 2, 3]
    assert fetched(partition, 0, isolation=READ_COMMITTED) == [0]
    assert partition.list_offset(-1, isolation=READ_COMMITTED) == TimeOffset(2, -1, 3)
    marker = end_txn_batch(EndTxnMarker(False, 0), producer_id=7, producer_epoch=0, timestamp=NOW_MS)
    partition.append(marker, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    assert partition.last_stable_offset == 6
    answer = partition.fetch(0, 1 << 20, isolation=READ_COMMITTED)
    assert answer.aborted == [(7, 2)]
    assert partition.fetch(0, 1 << 20).aborted == []
    assert partition.fetch(6, 1 << 20, isolation=READ_COMMITTED).aborted == []


def test_a_restart_settles_finished_transactions() -> None:
    disk = SimDisk()
    partition = make(disk=disk)
    partition.append(batch(producer=7, sequence=0, transactional=True), now_ms=NOW_MS)
    marker = end_txn_batch(EndTxnMarker(True, 0), producer_id=7, producer_epoch=0, timestamp=NOW_MS)
    partition.append(marker, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    assert make(disk=disk).last_stable_offset == 2


def test_delete_records() -> None:
    partition = fill(make())
    assert partition.delete_records(3) == 3
    assert partition.delete_records(2) == 3, "it never goes back"
    assert partition.delete_records(-1) == 8
    assert code(partition.delete_records, 9) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert code(partition.delete_records, -2) == ErrorCode.OFFSET_OUT_OF_RANGE
    compacted = fill(make(LogConfig(compact=True, delete=False)))
    assert code(compacted.delete_records, 1) == ErrorCode.POLICY_VIOLATION


def test_a_disk_that_cannot_be_read() -> None:
    disk = SimDisk(faults=DiskFaults())
    fill(make(disk=disk))
    partition = make(disk=disk)
    disk.faults.read_error_rate = 1.0
    partition.log.roll(NOW_MS)
    assert code(partition.fetch, 1, 100) == ErrorCode.KAFKA_STORAGE_ERROR
    assert code(partition.list_offset, NOW_MS) == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.list_offset(-1) == TimeOffset(8, -1, 3)
    disk.faults.read_error_rate = 0.0
    assert fetched(partition, 1) == [0, 2, 4, 6]


@pytest.mark.parametrize(
    "config", [DURABLE, LogConfig(flush_messages=1)], ids=["ottla.fsync.before.ack", "flush.messages"]
)
def test_durable_records_count_when_they_are_on_disk(config: LogConfig) -> None:
    partition = fill(make(config), 2)
    assert (partition.high_watermark, partition.needs_sync) == (0, True)
    assert fetched(partition, 0) == []
    files = partition.log.files_to_sync()
    fill(partition, 1)
    for file in files:
        file.sync()
    partition.synced()
    assert (partition.high_watermark, partition.log.recovery_point, partition.needs_sync) == (4, 4, True)
    assert fetched(partition, 0) == [0, 2]
    assert partition.list_offset(-1) == TimeOffset(4, -1, 3)
    partition.log.files_to_sync()
    partition.synced()
    assert (partition.high_watermark, partition.needs_sync) == (6, False)


def test_flush_messages_does_not_hold_answers() -> None:
    partition = make(LogConfig(flush_messages=4))
    fill(partition, 1)
    assert (partition.high_watermark, partition.needs_sync) == (2, False)
    fill(partition, 1)
    assert (partition.high_watermark, partition.needs_sync) == (4, True)


def test_what_was_counted_survives_a_loss_of_power() -> None:
    for seed in range(10):
        disk = SimDisk(random.Random(seed))
        partition = make(DURABLE, disk)
        for _ in range(3):
            fill(partition, 2)
            for file in partition.log.files_to_sync():
                file.sync()
            partition.synced()
        fill(partition, 2)
        counted = partition.high_watermark
        log = open_log(disk.crash(Crash.POWER), DURABLE, recovery_point=0)
        assert counted == 12 <= log.next_offset
        assert [record.offset for record in read_records(log)] == list(range(log.next_offset))


def test_a_failed_sync_takes_back_what_nobody_was_promised() -> None:
    disk = SimDisk(faults=DiskFaults())
    partition = fill(make(DURABLE, disk), 2)
    partition.log.files_to_sync()
    partition.synced()
    fill(partition, 2)
    partition.sync_failed(NOW_MS)
    assert (partition.log.next_offset, partition.high_watermark) == (4, 4)
    fill(partition, 1)
    assert [record.offset for record in read_records(partition.log)] == list(range(6))


def test_a_full_disk_fails_the_append_only() -> None:
    disk = SimDisk(faults=DiskFaults())
    partition = fill(make(disk=disk))
    disk.faults.capacity_bytes = disk.used_bytes
    with pytest.raises(Exception, match="no space"):
        partition.append(batch(), now_ms=NOW_MS)
    assert partition.high_watermark == 8 and fetched(partition, 0) == [0, 2, 4, 6]
    disk.faults.capacity_bytes = None
    assert partition.append(batch(), now_ms=NOW_MS).first_offset == 8


def test_settings_change_the_promise() -> None:
    partition = fill(make(DURABLE), 1)
    assert partition.high_watermark == 0
    partition.configure(DURABLE._replace(fsync_before_ack=False))
    assert partition.high_watermark == 2
    partition.configure(DURABLE)
    fill(partition, 1)
    assert partition.high_watermark == 2


def test_a_checkpointed_watermark() -> None:
    disk = SimDisk()
    fill(make(disk=disk))
    for given, expected in ((5, 5), (99, 8), (0, 0)):
        partition = Partition("topic", 0, open_log(disk), neighbours=ALONE, high_watermark=given)
        assert partition.high_watermark == expected
