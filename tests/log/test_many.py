"""Thousands of partitions on one disk: few descriptors, little memory, quick to open."""

import gc
import os
import tracemalloc
from pathlib import Path

import pytest
from tests.log.logs import NOW_MS, batch, read_records

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.server.osdisk import OsDisk

COUNT = 2_000


def test_thousands_of_partitions(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path), open_files_max=64)
    descriptors = len(os.listdir("/proc/self/fd"))
    config = LogConfig()
    logs = [Log.open(disk, f"t-{i}", config, now_ms=NOW_MS) for i in range(COUNT)]
    for turn in range(3):
        for i, log in enumerate(logs):
            log.append(batch(timestamp=NOW_MS + turn, producer=i, sequence=turn), leader_epoch=0, now_ms=NOW_MS)
            if i % 500 == 0:
                assert len(os.listdir("/proc/self/fd")) <= descriptors + 64
    for log in logs:
        log.close(NOW_MS, sync=False)
    disk.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors

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
    assert held < segments * 1_500, "what a read of everything leaves behind"
    disk.close()
