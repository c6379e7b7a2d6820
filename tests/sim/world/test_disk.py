"""The simulated disk keeps what was synced and breaks everything else, as its fault model says."""

import errno
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.log.files.disk import StorageError
from ottla.sim.world.disk import Crash, DiskFaults, HostCrashedError, SimDisk


def test_files_behave_like_files() -> None:
    disk = SimDisk()
    disk.make_directory("a/b")
    file = disk.open("a/b/x", create=True)
    file.append(b"hello")
    file.append(memoryview(b" world"))
    file.write(0, b"J")
    assert (file.read(0, 100), file.size) == (b"Jello world", 11)
    assert disk.open("a/b/x") is file
    file.truncate(5)
    disk.rename("a/b", "a/c")
    assert file.path == "a/c/x" and disk.list("a/c") == ["x"] and disk.list("a/b") == []
    with pytest.raises(FileNotFoundError):
        disk.open("a/b/x")
    with pytest.raises(StorageError, match="not empty"):
        disk.remove("a/c")
    disk.remove("a/c/x")
    disk.remove("a/c/x")
    disk.remove("a/c")
    assert file.read(0, 9) == b"Jello", "an open file outlives its name"
    assert not disk.exists("a/c") and disk.exists("a")


def test_rename_replaces() -> None:
    disk = SimDisk()
    disk.open("old", create=True).append(b"1")
    disk.open("new", create=True).append(b"22")
    disk.rename("old", "new")
    assert disk.content("new") == b"1" and disk.paths() == ["new"]


def test_a_process_crash_keeps_the_page_cache_and_kills_the_old_handles() -> None:
    disk = SimDisk()
    file = disk.open("x", create=True)
    file.append(b"unsynced")
    reborn = disk.crash(Crash.PROCESS)
    assert reborn.open("x").read(0, 100) == b"unsynced"
    with pytest.raises(HostCrashedError):
        file.append(b"zombie")
    with pytest.raises(HostCrashedError):
        disk.open("x")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    operations=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 3000)),
            st.tuples(st.just("write"), st.integers(0, 4000)),
            st.tuples(st.just("truncate"), st.integers(0, 4000)),
            st.tuples(st.just("sync"), st.just(0)),
        ),
        max_size=25,
    ),
)
def test_power_loss_never_touches_what_was_synced(seed: int, operations: list[tuple[str, int]]) -> None:
    disk = SimDisk(random.Random(seed))
    file = disk.open("x", create=True)
    disk.sync_directory("")
    synced, dirty_from = b"", 0
    for number, (what, size) in enumerate(operations):
        match what:
            case "append":
                dirty_from = min(dirty_from, file.size)
                file.append(bytes([number + 1]) * size)
            case "write":
                dirty_from = min(dirty_from, size, file.size)
                file.write(size, bytes([number + 1]) * 100)
            case "truncate":
                dirty_from = min(dirty_from, size, file.size)
                file.truncate(size)
            case _:
                file.sync()
                synced = file.read(0, file.size)
                dirty_from = len(synced)
    seen = disk.crash(Crash.POWER).content("x")
    assert seen[:dirty_from] == synced[:dirty_from]


def test_power_loss_shows_every_fate_over_the_seeds() -> None:
    outcomes = {"lost": 0, "kept": 0, "torn": 0, "zeros": 0, "holes": 0}
    for seed in range(200):
        disk = SimDisk(random.Random(seed))
        file = disk.open("x", create=True)
        disk.sync_directory("")
        for number in range(1, 9):
            file.append(bytes([number]) * 700)
        whole = disk.content("x")
        seen = disk.crash(Crash.POWER).content("x")
        if not seen:
            outcomes["lost"] += 1
        elif seen == whole:
            outcomes["kept"] += 1
        elif whole.startswith(seen):
            outcomes["torn"] += 1
        elif whole.startswith(seen.rstrip(b"\0")):
            outcomes["zeros"] += 1
        else:
            outcomes["holes"] += 1
            assert all(a in (b, 0) for a, b in zip(seen, whole, strict=False)), "only old zeros or new bytes"
    assert min(outcomes.values()) > 3, outcomes


def test_names_need_their_directory_synced() -> None:
    survived = {True: 0, False: 0}
    for seed in range(60):
        disk = SimDisk(random.Random(seed))
        disk.make_directory("d")
        disk.sync_directory("")
        kept = disk.open("d/kept", create=True)
        kept.append(b"x")
        kept.sync()
        disk.sync_directory("d")
        file = disk.open("d/new", create=True)
        file.append(b"y")
        file.sync()
        disk.remove("d/kept")
        reborn = disk.crash(Crash.POWER)
        names = reborn.list("d")
        assert names in (["kept"], ["kept", "new"], ["new"]), "changes of one directory are lost from the end"
        if "new" in names:
            assert reborn.content("d/new") == b"y"
        survived["new" in names] += 1
    assert min(survived.values()) > 5


def test_an_unsynced_rename_is_whole_or_undone() -> None:
    seen = set()
    for seed in range(40):
        disk = SimDisk(random.Random(seed))
        for name, data in (("old", b"1"), ("new", b"2")):
            file = disk.open(name, create=True)
            file.append(data)
            file.sync()
        disk.sync_directory("")
        disk.rename("old", "new")
        reborn = disk.crash(Crash.POWER)
        seen.add(tuple((path, reborn.content(path)) for path in reborn.paths()))
    assert seen == {(("new", b"1"),), (("new", b"2"), ("old", b"1"))}


def test_full_read_only_and_failing_disks() -> None:
    disk = SimDisk(faults=DiskFaults(capacity_bytes=10))
    file = disk.open("x", create=True)
    file.append(b"12345678")
    with pytest.raises(StorageError) as full:
        file.append(b"9abc")
    assert full.value.errno == errno.ENOSPC and file.size == 8
    file.write(0, b"overwriting needs no space"[:8])
    disk.faults.capacity_bytes = None
    file.append(b"9abc")
    disk.faults.read_only = True
    for attempt in (lambda: file.append(b"x"), lambda: disk.remove("x"), lambda: disk.make_directory("y")):
        with pytest.raises(StorageError) as refused:
            attempt()
        assert refused.value.errno == errno.EROFS
    disk.faults = DiskFaults(read_error_rate=1.0, write_error_rate=1.0)
    for attempt in (lambda: file.append(b"x"), lambda: file.read(0, 1)):
        with pytest.raises(StorageError) as failed:
            attempt()
        assert failed.value.errno == errno.EIO


def test_a_failed_sync_is_not_made_good_by_the_next_one() -> None:
    disk = SimDisk()
    file = disk.open("x", create=True)
    disk.sync_directory("")
    file.append(b"never durable")
    disk.faults.sync_error_rate = 1.0
    with pytest.raises(StorageError):
        file.sync()
    disk.faults.sync_error_rate = 0.0
    file.sync()
    assert file.read(0, 99) == b"never durable"
    assert disk.crash(Crash.POWER).content("x") == b""


def test_a_crash_strikes_inside_an_operation() -> None:
    sizes = set()
    for seed in range(30):
        disk = SimDisk(random.Random(seed))
        file = disk.open("x", create=True)
        told: list[str] = []
        disk.crash_within(2, lambda told=told: told.append("crash"))
        file.append(b"1" * 100)
        with pytest.raises(HostCrashedError):
            file.append(b"2" * 100)
        assert told == ["crash"]
        content = disk.crash(Crash.PROCESS).content("x")
        assert content == (b"1" * 100 + b"2" * 100)[: len(content)] and len(content) >= 100
        sizes.add(len(content))
    assert len(sizes) > 10


def test_bit_rot_and_garbage() -> None:
    disk = SimDisk(random.Random(5))
    file = disk.open("x", create=True)
    file.append(bytes(1000))
    file.sync()
    disk.sync_directory("")
    position = disk.flip_bit("x")
    assert position is not None
    assert disk.crash(Crash.POWER).content("x")[position] != 0
    spoiled = 0
    for seed in range(50):
        disk = SimDisk(random.Random(seed), DiskFaults(garbage_rate=1.0))
        file = disk.open("x", create=True)
        file.append(b"\1" * 600)
        file.sync()
        disk.sync_directory("")
        file.append(b"\2" * 600)
        content = disk.crash(Crash.POWER).content("x")
        assert content[:600] == b"\1" * 600
        spoiled += any(byte not in (0, 2) for byte in content[600:])
    assert spoiled > 5
