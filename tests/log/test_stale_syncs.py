"""A sync that was under way while the log was cut: it vouches for nothing that was written after it began."""

import random

import pytest
from tests.log.logs import NOW_MS, append, batch, open_log, read_records

from ottla.log.config import LogConfig
from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.sim.world.disk import Crash, SimDisk

SIZE = len(batch(1))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE)


def written(log: Log, count: int, text: bytes) -> None:
    for _ in range(count):
        append(log, batch(size_bytes=10, key=text))


def keys(log: Log) -> list[bytes | None]:
    return [record.key for record in read_records(log)]


@pytest.mark.parametrize("kept", [0, 2, 4, 5, 8, 9])
@pytest.mark.parametrize("seed", range(10))
def test_a_sync_claims_nothing_that_was_cut_and_written_again(seed: int, kept: int) -> None:
    disk = SimDisk(random.Random(seed))
    log = open_log(disk, CONFIG)
    written(log, 10, b"old")
    files = log.files_to_sync()
    log.truncate_to(kept, now_ms=NOW_MS)
    for file in files:
        file.sync()
    written(log, 12 - kept, b"new")
    log.mark_synced()
    assert log.recovery_point <= kept
    again = open_log(disk.crash(Crash.POWER), CONFIG, recovery_point=log.recovery_point)
    assert again.next_offset >= kept
    assert keys(again)[:kept] == [b"old"] * kept


def test_a_cut_that_fails_lowers_the_claim_at_once() -> None:
    disk = SimDisk()
    log = open_log(disk, CONFIG)
    written(log, 3, b"old")
    log.files_to_sync()
    disk.faults.read_only = True
    with pytest.raises(StorageError):
        log.truncate_to(1, now_ms=NOW_MS)
    log.mark_synced()
    assert log.recovery_point == 1
    disk.faults.read_only = False
    written(log, 3, b"new")
    assert (log.recovery_point, keys(log)) == (1, [b"old", b"new", b"new", b"new"])


def test_beginning_anew_leaves_a_sync_nothing_to_claim() -> None:
    for offset in (1, 100):
        log = open_log(SimDisk(), CONFIG)
        written(log, 10, b"old")
        log.files_to_sync()
        log.truncate_fully_and_start_at(offset, now_ms=NOW_MS)
        written(log, 3, b"new")
        log.mark_synced()
        assert log.recovery_point <= offset
        log.flush()
        assert log.recovery_point == offset + 3


def test_a_sync_that_was_overtaken_by_a_whole_flush_claims_nothing_more() -> None:
    log = open_log(SimDisk(), CONFIG)
    written(log, 3, b"old")
    log.files_to_sync()
    log.truncate_to(1, now_ms=NOW_MS)
    log.flush()
    written(log, 2, b"new")
    log.mark_synced()
    assert log.recovery_point == 1
