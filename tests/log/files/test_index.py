"""The sparse indexes: lookups near the end and far from it, files of a killed Kafka, cutting."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.files.disk import Directory
from ottla.log.files.index import OffsetIndex, TimeIndex
from ottla.sim.world.disk import DiskFaults, SimDisk

BASE = 1_000


def directory(disk: SimDisk | None = None) -> Directory:
    disk = disk or SimDisk()
    disk.make_directory("t-0")
    return Directory(disk, "t-0")


def offset_index(count: int, place: Directory | None = None) -> OffsetIndex:
    """Entry n: offset BASE + 10 (n + 1), position 100 (n + 1)."""
    index = OffsetIndex(place or directory(), "i.index", BASE)
    for n in range(1, count + 1):
        index.append(BASE + 10 * n, 100 * n)
    return index


def expected(count: int, offset: int) -> int:
    return 100 * min(max((offset - BASE) // 10, 0), count)


@pytest.mark.parametrize("count", [0, 1, 2, 127, 128, 129, 511, 512, 513, 2_000])
@pytest.mark.parametrize("closed", [False, True])
def test_lookup(count: int, closed: bool) -> None:
    index = offset_index(count)
    if closed:
        index.retire()
    assert index.count == count
    for offset in [*range(BASE, BASE + 10 * count + 30, 7), BASE + 10 * count, BASE]:
        assert index.lookup(offset) == expected(count, offset)
    assert index.last() == (BASE + 10 * count, 100 * count)


@given(st.lists(st.integers(BASE - 1, BASE + 21_000), max_size=60), st.integers(0, 2_000))
def test_lookups_in_any_order(offsets: list[int], count: int) -> None:
    index = offset_index(count)
    assert [index.lookup(offset) for offset in offsets] == [expected(count, offset) for offset in offsets]


def test_the_file_is_kafkas() -> None:
    place = directory()
    index = offset_index(3, place)
    index.write_out()
    assert place.open("i.index").read(0, 100) == struct.pack(">6i", 10, 100, 20, 200, 30, 300)


def test_writes_are_few() -> None:
    disk = SimDisk()
    writes: list[int] = []
    index = OffsetIndex(directory(disk), "i.index", BASE)
    disk.on_operation = lambda what, path, size: writes.append(size) if what == "write" else None
    for n in range(1, 10_001):
        index.append(BASE + n, n)
    assert len(writes) < 30


def test_padding_of_a_killed_kafka_is_ignored() -> None:
    place = directory()
    offset_index(700, place).write_out()
    place.open("i.index").append(bytes(80_000))
    times = TimeIndex(place, "i.timeindex", BASE)
    for n in range(1, 301):
        times.append(5 * n, BASE + n)
    times.write_out()
    place.open("i.timeindex").append(bytes(12 * 999))

    index, times = OffsetIndex(place, "i.index", BASE), TimeIndex(place, "i.timeindex", BASE)
    assert index.load() and times.load()
    assert (index.count, times.count) == (700, 300)
    assert (index.last(), times.last()) == ((BASE + 7_000, 70_000), (1_500, BASE + 300))
    index.append(BASE + 8_000, 80_000)
    index.write_out()
    times.write_out()
    assert place.open("i.index").size == 701 * 8
    assert place.open("i.timeindex").size == 300 * 12


def test_an_index_of_zeros_only_is_empty() -> None:
    place = directory()
    place.open("i.index", create=True).append(bytes(4_096))
    index = OffsetIndex(place, "i.index", BASE)
    assert index.load() and index.count == 0 and index.lookup(BASE + 5) == 0


def test_an_odd_size_is_not_sound() -> None:
    place = directory()
    offset_index(3, place).write_out()
    place.open("i.index").append(b"xyz")
    assert not OffsetIndex(place, "i.index", BASE).load()
    assert not OffsetIndex(place, "missing.index", BASE).load()


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("keep", [0, 1, 300, 600, 999, 1_000])
def test_truncate_and_go_on(written: bool, keep: int) -> None:
    place = directory()
    index = offset_index(1_000, place)
    if written:
        index.retire()
    index.truncate(BASE + 10 * keep + 1)
    assert index.count == keep
    index.append(BASE + 50_000, 999_999)
    index.write_out()
    again = OffsetIndex(place, "i.index", BASE)
    assert again.load() and again.count == keep + 1
    assert again.last() == (BASE + 50_000, 999_999)
    assert again.lookup(BASE + 10 * keep) == 100 * keep


def test_a_full_disk_does_not_fail_the_append() -> None:
    """The batch is in the log by then; entries wait in memory and are written when there is room."""
    disk = SimDisk(faults=DiskFaults(capacity_bytes=100))
    index = offset_index(1_500, directory(disk))
    assert index.lookup(BASE + 10) == 100
    disk.faults.capacity_bytes = None
    index.append(BASE + 20_000, 200_000)
    index.retire()
    assert index.count == 1_501
    assert index.lookup(BASE + 7_777) == expected(1_501, BASE + 7_777)


def test_time_entries_only_ascend() -> None:
    times = TimeIndex(directory(), "t", BASE)
    for timestamp, offset in [(5, BASE + 1), (5, BASE + 2), (3, BASE + 3), (9, BASE + 4)]:
        times.append(timestamp, offset)
    assert times.count == 2
    assert times.lookup(4) == (-1, BASE)
    assert times.lookup(5) == times.lookup(8) == (5, BASE + 1)
    assert times.lookup(100) == times.last() == (9, BASE + 4)
    times.truncate(BASE + 4)
    assert times.last() == (5, BASE + 1)


def test_time_lookup_over_file_and_memory() -> None:
    times = TimeIndex(directory(), "t", BASE)
    for n in range(1, 1_301):
        times.append(10 * n, BASE + n)
    assert times.count == 1_300
    for timestamp in range(0, 13_100, 37):
        n = min(timestamp // 10, 1_300)
        assert times.lookup(timestamp) == ((10 * n, BASE + n) if n else (-1, BASE))
