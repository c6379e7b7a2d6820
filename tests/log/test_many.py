"""Thousands of partitions on one disk: few descriptors, little memory, quick to open."""

import contextlib
import gc
import os
import tracemalloc
from pathlib import Path

import pytest
from tests.log.logs import NOW_MS, batch, read_records

from ottla.log.closing import close_logs
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.server.ports.os_disk import OsDisk
from ottla.sim.world.disk import Crash, SimDisk

COUNT = 2_000


def open_below(folder: Path) -> int:
    """How many descriptors of this process are for files in a folder (others may come and go meanwhile)."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += os.readlink(descriptor).startswith(f"{folder}/")
    return found


def test_thousands_of_partitions(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path), open_files_max=64)
    config = LogConfig()
    logs = [Log.open(disk, f"t-{i}", config, now_ms=NOW_MS) for i in range(COUNT)]
    for turn in range(3):
        for i, log in enumerate(logs):
            log.append(batch(timestamp=NOW_MS + turn, producer=i, sequence=turn), leader_epoch=0, now_ms=NOW_MS)
            if i % 500 == 0:
                assert open_below(tmp_path) <= 64
    for log in logs:
        log.close(sync=False)
    disk.close()
    assert open_below(tmp_path) == 0

    gc.collect()
    tracemalloc.start()
    again = OsDisk(str(tmp_path), open_files_max=64)
    logs = [Log.open(again, f"t-{i}", config, now_ms=NOW_MS, clean=True) for i in range(COUNT)]
    per_log = tracemalloc.get_traced_memory()[0] / COUNT
    tracemalloc.stop()
    assert per_log < 8_192, f"{per_log:.0f} bytes per idle partition"
    assert all(log.next_offset == 3 and len(log.producers) == 1 for log in logs)
    assert [record.offset for record in read_records(logs[77])] == [0, 1, 2]
    again.close()


@pytest.mark.parametrize("segments", [300])
def test_many_segments_hold_no_index_in_memory(tmp_path: Path, segments: int) -> None:
    disk = OsDisk(str(tmp_path), open_files_max=16)
    log = Log.open(disk, "t-0", LogConfig(segment_bytes=4_000, index_interval_bytes=100), now_ms=NOW_MS)
    while len(log.segments) < segments:
        log.append(batch(5, timestamp=NOW_MS), leader_epoch=0, now_ms=NOW_MS)
    tracemalloc.start()
    found = read_records(log)
    found.clear()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < segments * 600, "what a read of everything leaves behind"
    disk.close()


@pytest.mark.parametrize("count", [3, 100])
def test_closing_many_is_one_sync(count: int) -> None:
    disk = SimDisk()
    logs = [Log.open(disk, f"t-{i}", LogConfig(), now_ms=NOW_MS) for i in range(count)]
    for log in logs:
        log.append(batch(timestamp=NOW_MS), leader_epoch=0, now_ms=NOW_MS)
    operations: list[str] = []
    disk.on_operation = lambda what, path, size: operations.append(what)
    close_logs(disk, logs)
    assert operations.count("sync_all") == (count > 32)
    assert operations.count("sync") < 10 * 32
    assert all(log.recovery_point == 1 and not log.needs_sync for log in logs)
    disk = disk.crash(Crash.POWER)
    for i in range(count):
        log = Log.open(disk, f"t-{i}", LogConfig(), now_ms=NOW_MS, recovery_point=1, clean=True)
        assert len(read_records(log)) == 1


def test_a_real_disk_syncs_as_a_whole(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    disk.open("a", create=True).append(b"x")
    disk.sync_all()
    disk.close()
