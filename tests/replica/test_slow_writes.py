"""Records that wait for a slow disk: they have their offsets, and nobody sees them before they are written."""

from typing import cast

import pytest
from tests.log.logs import NOW_MS, batch, open_log, read_records
from tests.support.neighbours import ALONE

from ottla.log.config import LogConfig
from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.model.errors import ApiError
from ottla.replica.neighbours import Neighbours
from ottla.replica.partition import Partition
from ottla.replica.reading import LATEST, TO_THE_END
from ottla.replica.terms import Terms
from ottla.sim.world.disk import Crash, SimDisk

SMALL = LogConfig(segment_bytes=400)


class Slow:
    """Neighbours that are asked to write; everything else is as for a partition that is alone."""

    def __init__(self) -> None:
        self.asked = 0
        self.moves: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(ALONE, name)

    def must_write(self, partition: Partition) -> None:
        self.asked += 1

    def moved(self, partition: Partition) -> None:
        self.moves.append(partition.high_watermark)

    def broker_epoch(self, broker_id: int) -> int | None:
        return 1

    def may_join(self, broker_id: int) -> bool:
        return True


def make(config: LogConfig | None = None, **options: int) -> tuple[Partition, SimDisk, Slow]:
    disk, slow = SimDisk(), Slow()
    options = options or {"leader_epoch": 0}
    log = open_log(disk, config, may_wait=lambda _: True)
    return Partition("topic", 0, log, neighbours=cast(Neighbours[Partition], slow), **options), disk, slow


def append(partition: Partition, count: int = 1, **options: int) -> None:
    partition.append(batch(count, **options), now_ms=NOW_MS)


def visible(partition: Partition) -> int:
    """Up to where a consumer and a follower can read."""
    found = partition.fetch(0, 1 << 20)
    end = partition.log.read(0, 1 << 20, max_offset=partition.log.written_offset)
    assert (0 if found.records is None else found.records.size_bytes) == end.size_bytes
    return partition.high_watermark


def survivors(disk: SimDisk, config: LogConfig | None = None) -> int:
    """How many records a process that is killed now leaves."""
    return len(read_records(open_log(disk.crash(Crash.PROCESS), config)))


def test_nothing_counts_before_it_is_written() -> None:
    partition, disk, slow = make()
    append(partition)
    disk.faults.slow_writes = True
    append(partition, 2)
    append(partition, 3)
    assert (partition.log.next_offset, partition.log.written_offset, partition.own_end, slow.asked) == (6, 1, 1, 2)
    assert visible(partition) == 1
    assert len(read_records(partition.log)) == 6, "whoever may read to the end finds it in memory"
    partition.log.write_waiting()
    partition.written()
    assert visible(partition) == partition.own_end == 6
    assert survivors(disk) == 6


def test_nobody_is_told_of_what_waits() -> None:
    """Not even replicas and debuggers, who may read to the end of the log."""
    partition, disk, _ = make()
    append(partition)
    disk.faults.slow_writes = True
    append(partition)
    partition.lead(Terms(0, 1, 1, (0,), (0,)), now_ms=0)
    append(partition)

    def told() -> list[object]:
        latest = partition.list_offset(LATEST, isolation=TO_THE_END)
        assert latest is not None
        return [latest.offset, partition.epoch_end_offset(0), partition.epoch_end_offset(1)]

    assert told() == [1, (0, 1), (1, 1)]
    partition.lead(Terms(0, 2, 2, (0,), (0,)), now_ms=0)
    assert partition.epoch_end_offset(2) == (2, 1)
    partition.log.write_waiting()
    partition.written()
    assert told() == [3, (0, 2), (1, 3)]


def test_what_waits_is_lost_with_the_process() -> None:
    partition, disk, _ = make()
    append(partition)
    disk.faults.slow_writes = True
    append(partition, 2)
    assert (visible(partition), survivors(disk)) == (1, 1)


def test_a_disk_that_is_quick_again_keeps_the_order() -> None:
    """What is appended goes behind what waits, and counts after it."""
    partition, disk, _ = make()
    disk.faults.slow_writes = True
    append(partition)
    disk.faults.slow_writes = False
    append(partition)
    assert visible(partition) == 0
    partition.log.write_waiting()
    partition.written()
    append(partition)
    assert visible(partition) == 3 and not partition.log.unwritten


def test_an_old_segment_that_waits_holds_back_a_new_one() -> None:
    partition, disk, _ = make(SMALL)
    disk.faults.slow_writes = True
    for _ in range(8):
        append(partition)
    first, *others = partition.log.unwritten.files()
    assert others, "it was rolled meanwhile"
    for file in others:
        file.write_waiting()
    partition.written()
    assert visible(partition) == 0
    first.write_waiting()
    partition.written()
    assert visible(partition) == 8
    assert survivors(disk, SMALL) == 8


def test_a_failed_write_takes_back_what_waited() -> None:
    partition, disk, _ = make(SMALL)
    append(partition, producer=7, sequence=0)
    disk.faults.slow_writes = True
    for sequence in range(1, 9):
        append(partition, producer=7, sequence=sequence)
    disk.faults.capacity_bytes = disk.used_bytes
    with pytest.raises(StorageError):
        partition.log.write_waiting()
    cuts = partition.cuts
    partition.write_failed(NOW_MS)
    assert (partition.cuts, partition.log.next_offset, visible(partition)) == (cuts + 1, 1, 1)
    disk.faults.capacity_bytes = None
    disk.faults.slow_writes = False
    append(partition, producer=7, sequence=1)
    assert visible(partition) == 2
    assert survivors(disk, SMALL) == 2


def test_what_is_written_counts_although_the_rest_cannot_be() -> None:
    partition, disk, slow = make(SMALL)
    disk.faults.slow_writes = True
    for _ in range(8):
        append(partition)
    first, *_ = partition.log.unwritten.files()
    first.write_waiting()
    partition.write_failed(NOW_MS)
    assert 0 < partition.log.next_offset < 8
    assert slow.moves[1:] == [visible(partition)] == [partition.log.next_offset]


def test_a_cut_takes_what_waits() -> None:
    """Another leader's history takes its place."""
    partition, disk, _ = make()
    append(partition)
    disk.faults.slow_writes = True
    append(partition, 2)
    append(partition, 2)
    partition.follow(Terms(1, 1, 1, (0, 1), (1,)))
    partition.truncate_to(3)
    assert (partition.log.next_offset, partition.log.written_offset) == (3, 1)
    partition.truncate_to(1)
    assert not partition.log.unwritten
    partition.log.write_waiting()
    partition.written()
    assert (partition.log.next_offset, survivors(disk)) == (1, 1)


def leaders_log() -> Log:
    log = open_log()
    for _ in range(3):
        log.append(batch(2), leader_epoch=0, now_ms=NOW_MS)
    return log


def test_a_follower_tells_nobody_of_what_waits() -> None:
    partition, disk, _ = make(node_id=0)
    partition.follow(Terms(1, 0, 0, (0, 1), (0, 1)))
    disk.faults.slow_writes = True
    records = leaders_log().read(0, 1 << 20, max_offset=6).slice
    assert records is not None
    partition.append_fetched(records.read(), 6, 0, now_ms=NOW_MS)
    assert (partition.log.next_offset, partition.high_watermark, partition.fetch_offset) == (6, 0, None)
    partition.log.write_waiting()
    partition.written()
    assert (partition.high_watermark, partition.fetch_offset) == (6, 6)


def test_followers_get_nothing_that_waits_and_are_in_sync_without_it() -> None:
    partition, disk, _ = make(node_id=0)
    partition.lead(Terms(0, 0, 0, (0, 1), (0, 1)), now_ms=0)
    append(partition)
    partition.fetch_as_follower(1, 1, 1, 1 << 20, now_ms=0)
    disk.faults.slow_writes = True
    append(partition)
    answer = partition.fetch_as_follower(1, 1, 1, 1 << 20, now_ms=100_000)
    assert (answer.records, answer.high_watermark) == (None, 1)
    assert partition.isr_proposal(100_000) is None
    partition.log.write_waiting()
    partition.written()
    answer = partition.fetch_as_follower(1, 1, 1, 1 << 20, now_ms=100_000)
    assert answer.records is not None and partition.high_watermark == 1
    partition.fetch_as_follower(1, 1, 2, 1 << 20, now_ms=100_000)
    assert partition.high_watermark == 2


def test_closing_writes_what_waits() -> None:
    partition, disk, _ = make()
    disk.faults.slow_writes = True
    append(partition, 3)
    partition.log.close()
    assert len(read_records(open_log(disk, clean=True))) == 3


def test_a_sync_writes_what_waits() -> None:
    partition, disk, _ = make(LogConfig(fsync_before_ack=True))
    disk.faults.slow_writes = True
    append(partition, 3)
    for file in partition.log.files_to_sync():
        file.sync()
    partition.synced()
    assert (visible(partition), partition.log.unwritten) == (3, [])


def test_a_log_that_nobody_writes_for_waits_for_its_disk() -> None:
    disk = SimDisk()
    disk.faults.slow_writes = True
    log = open_log(disk)
    log.append(batch(), leader_epoch=0, now_ms=NOW_MS)
    assert log.written_offset == 1


def test_a_refused_batch_changes_nothing_while_others_wait() -> None:
    partition, disk, _ = make()
    disk.faults.slow_writes = True
    append(partition, producer=7, sequence=0)
    with pytest.raises(ApiError):
        append(partition, producer=7, sequence=5)
    assert (partition.log.next_offset, len(partition.log.unwritten)) == (1, 1)


def test_a_copy_waits_and_reports_segments_only_when_the_partition_uses_it() -> None:
    partition, _, slow = make(SMALL)
    sealed: list[Partition] = []
    slow.sealed = sealed.append
    disk = SimDisk()
    copy = open_log(disk, SMALL, on_roll=partition.rolled, may_wait=partition.uses)
    disk.faults.slow_writes = True
    records = leaders_log().read(0, 1 << 20, max_offset=6).slice
    assert records is not None
    copy.append_replicated(records.read(), 0, now_ms=NOW_MS)
    copy.roll(NOW_MS)
    assert (copy.written_offset, sealed) == (6, [])
    copy.flush()
    partition.move_to(copy)
    append(partition, 3)
    assert (copy.written_offset, sealed) == (6, [])
    copy.roll(NOW_MS)
    assert sealed == [partition]
