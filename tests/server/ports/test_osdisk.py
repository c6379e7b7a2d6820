"""The real disk: descriptors, renames, failed writes, threads."""

import errno
import os
import resource
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.log.files.disk import Cold, StorageError
from ottla.model.limits import MIB, WARMED_WHOLE_BYTES
from ottla.server.ports import os_file as osfile
from ottla.server.ports import page_cache
from ottla.server.ports.os_disk import OsDisk, OsFile


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[OsDisk]:
    made = OsDisk(str(tmp_path), open_files_max=4)
    made.make_directory("t-0")
    yield made
    made.close()
    assert made.open_count == 0


def test_append_read_truncate(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open("t-0/a", create=True)
    file.append(b"hello ")
    file.append(memoryview(b"world"))
    assert (file.size, file.read(6, 100), file.read(20, 5)) == (11, b"world", b"")
    file.write(0, b"J")
    file.truncate(5)
    assert file.read(0, 10) == b"Jello" == (tmp_path / "t-0" / "a").read_bytes()
    file.sync()
    disk.sync_directory("t-0")
    disk.sync_directory("")


def test_missing_files(disk: OsDisk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open("t-0/none")
    assert not disk.exists("t-0/none")
    disk.remove("t-0/none")
    assert disk.list("nowhere") == []


def test_a_path_has_one_file(disk: OsDisk) -> None:
    assert disk.open("t-0/a", create=True) is disk.open("t-0/a")


def test_descriptors_are_bounded_and_reused(disk: OsDisk) -> None:
    before = len(os.listdir("/proc/self/fd"))
    files = [disk.open(f"t-0/{i}", create=True) for i in range(50)]
    for turn in range(3):
        for i, file in enumerate(files):
            file.append(b"%02d" % i)
            assert disk.open_count <= 4
        assert len(os.listdir("/proc/self/fd")) <= before + 4, turn
    assert [file.read(0, 6) for file in files] == [b"%02d" % i * 3 for i in range(50)]


def test_the_file_in_use_keeps_its_descriptor(disk: OsDisk) -> None:
    busy = disk.open("t-0/busy", create=True)
    busy.append(b"x")
    fd = busy._fd
    for i in range(20):
        disk.open(f"t-0/{i}", create=True).append(b"x")
        busy.append(b"x")
    assert busy._fd == fd


def test_files_follow_renames(disk: OsDisk) -> None:
    file, other = disk.open("t-0/a", create=True), disk.open("t-0/b", create=True)
    file.append(b"a")
    other.append(b"b")
    disk.rename("t-0/a", "t-0/c")
    assert (file.path, file.read(0, 1), disk.open("t-0/c")) == ("t-0/c", b"a", file)
    disk.rename("t-0", "t-0.gone-delete")
    assert other.path == "t-0.gone-delete/b"
    other.close()
    assert other.read(0, 1) == b"b"
    assert disk.open("t-0.gone-delete/c") is file


def test_a_replaced_or_removed_file_is_gone_for_its_holders(disk: OsDisk) -> None:
    """Who holds a slice of it must not be given the bytes of whatever has the name now."""
    old, new = disk.open("t-0/old", create=True), disk.open("t-0/new", create=True)
    old.append(b"old")
    new.append(b"new")
    disk.rename("t-0/new", "t-0/old")
    assert disk.open("t-0/old").read(0, 3) == b"new"
    with pytest.raises(StorageError):
        old.read(0, 3)
    disk.remove("t-0/old")
    disk.open("t-0/old", create=True).append(b"third")
    with pytest.raises(StorageError):
        new.read(0, 3)


def test_directories(disk: OsDisk) -> None:
    disk.open("t-0/b", create=True)
    disk.open("t-0/a", create=True)
    assert disk.list("t-0") == ["a", "b"]
    with pytest.raises(StorageError) as failed:
        disk.remove("t-0")
    assert failed.value.errno == errno.ENOTEMPTY
    disk.remove("t-0/a")
    disk.remove("t-0/b")
    disk.remove("t-0")
    assert disk.list("") == []


@pytest.mark.parametrize("short", [0, 3])
def test_a_failed_append_leaves_the_file_as_it_was(
    disk: OsDisk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, short: int
) -> None:
    """Half of the bytes arrive, then the disk is full."""
    file = disk.open("t-0/a", create=True)
    file.append(b"good")
    real = os.pwrite
    calls = 0

    def full(fd: int, data: Any, position: int) -> int:
        nonlocal calls
        calls += 1
        if calls == 1 and short:
            return real(fd, memoryview(data)[:short], position)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError) as failed:
        file.append(b"bad bytes")
    assert failed.value.errno == errno.ENOSPC and "t-0/a" in str(failed.value)
    monkeypatch.undo()
    assert (tmp_path / "t-0" / "a").read_bytes() == b"good"
    file.append(b" again")
    assert file.read(0, 100) == b"good again"


def test_garbage_behind_the_end_is_never_seen(disk: OsDisk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even if the half-written bytes cannot be cut off, they are not read, and the next sync or close cuts them."""
    file = disk.open("t-0/a", create=True)
    file.append(b"good")

    def half(fd: int, data: Any, position: int) -> int:
        (tmp_path / "t-0" / "a").write_bytes(b"good" + b"garbage")
        raise OSError(errno.EIO, "gone")

    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "gone")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", half)
        patched.setattr(os, "ftruncate", refuse)
        with pytest.raises(StorageError):
            file.append(b"bad")
    assert file.read(0, 100) == b"good"
    file.sync()
    assert (tmp_path / "t-0" / "a").read_bytes() == b"good"


def test_short_writes_are_continued(disk: OsDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open("t-0/a", create=True)
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: real(fd, memoryview(data)[:3], position))
    file.append(b"0123456789")
    assert file.read(0, 20) == b"0123456789"


def test_out_of_descriptors(disk: OsDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process limit is lower than ours: an open file gives way."""
    files = [disk.open(f"t-0/{i}", create=True) for i in range(3)]
    files[0].append(b"x")
    files[1].append(b"x")
    real = os.open
    refused = []

    def scarce(path: Any, flags: int, *rest: int) -> int:
        if not refused:
            refused.append(path)
            raise OSError(errno.EMFILE, "too many")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", scarce)
    files[2].append(b"x")
    assert refused and disk.open_count == 2


def test_a_read_only_directory_is_still_read(disk: OsDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open("t-0/a", create=True)
    file.append(b"data")
    file.close()
    real = os.open

    def read_only(path: Any, flags: int, *rest: int) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "read-only")
        return real(path, flags, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", read_only)
        assert file.read(0, 4) == b"data"
        with pytest.raises(StorageError):
            file.append(b"more")
        with pytest.raises(StorageError):
            disk.open("t-0/new", create=True)
    file.append(b"more")
    assert file.read(0, 8) == b"datamore"


def test_send(disk: OsDisk) -> None:
    file = disk.open("t-0/a", create=True)
    file.append(b"0123456789")
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        assert file.send(left, 2, 5) == 5
        assert right.recv(100) == b"23456"
        file.append(bytes(8 << 20))
        assert file.send(left, 0, 8 << 20) < 8 << 20
        with pytest.raises(BlockingIOError):
            file.send(left, 0, 8 << 20)
        right.close()
        with pytest.raises(ConnectionError):
            file.send(left, 0, 10)


def test_sync_and_append_from_two_threads(disk: OsDisk) -> None:
    """Syncs run in workers while the loop appends, and descriptors change hands all the time."""
    files = [disk.open(f"t-0/{i}", create=True) for i in range(12)]
    stop = threading.Event()
    failures: list[BaseException] = []

    def sync_all() -> None:
        try:
            while not stop.is_set():
                for file in files:
                    file.sync()
                    file.read(0, 10)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=sync_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(300):
        for number, file in enumerate(files):
            file.append(b"%03d,%02d;" % (i, number))
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    for number, file in enumerate(files):
        assert file.read(0, file.size) == b"".join(b"%03d,%02d;" % (i, number) for i in range(300))


def test_disk_full_for_real(tmp_path: Path) -> None:
    """RLIMIT_FSIZE is as good as a full disk for a single file, and needs no mount."""
    disk = OsDisk(str(tmp_path))
    file = disk.open("a", create=True)
    file.append(bytes(6_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, hard))
    try:
        with pytest.raises(StorageError) as failed:
            file.append(bytes(6_000))
        assert failed.value.errno == errno.EFBIG
        assert file.size == 6_000 == (tmp_path / "a").stat().st_size
        file.append(bytes(1_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    file.append(bytes(6_000))
    assert file.size == 13_000
    disk.close()


def test_a_descriptor_is_opened_while_its_directory_is_renamed(tmp_path: Path) -> None:
    """A worker syncs or reads files whose descriptors were given up, while the loop renames what they lie in."""
    disk = OsDisk(str(tmp_path), open_files_max=2)
    disk.make_directory("a")
    files = [disk.open(f"a/{number}", create=True) for number in range(6)]
    for file in files:
        file.append(b"x" * 10)
    failures: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set():
                for file in files:
                    assert file.read(0, 10) == b"x" * 10
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    for number in range(2_000):
        disk.rename(*("a", "b") if number % 2 == 0 else ("b", "a"))
    stop.set()
    thread.join()
    assert failures == []
    disk.close()


# --- what is not in memory


@pytest.fixture
def cold(disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OsFile:
    """Of a file of 6 MiB, only what lies below `warmed` is in memory."""
    monkeypatch.setattr(osfile, "FRESH_S", 0)
    file = disk.open("t-0/cold", create=True)
    file.append(bytes(6 * MIB))
    warmed: list[tuple[int, int]] = []

    def take_in(fd: int, position: int, end: int) -> None:
        warmed.append((position, end))

    monkeypatch.setattr(page_cache, "take_in", take_in)
    monkeypatch.setattr(page_cache, "has", lambda fd, low, high: any(a <= low and high <= b for a, b in warmed))
    return file


def test_what_is_cold_is_warmed_in_pieces(cold: OsFile) -> None:
    assert cold.size > WARMED_WHOLE_BYTES
    assert not cold.is_warm(MIB, 10)
    cold.warm(MIB, 10)
    assert cold.is_warm(MIB, 10) and cold.is_warm(MIB, MIB) and not cold.is_warm(MIB, MIB + 1)


def test_a_small_file_is_warmed_as_a_whole(cold: OsFile) -> None:
    cold.truncate(2 * MIB)
    cold.warm(MIB, 10)
    assert cold.is_warm(0, 2 * MIB)


def test_only_the_thread_in_a_hurry_is_told_of_cold_ranges(disk: OsDisk, cold: OsFile) -> None:
    disk.hurry()
    with pytest.raises(Cold) as told:
        cold.read(5, 10)
    assert (told.value.file, told.value.position, told.value.size_bytes) == (cold, 5, 10)
    found: list[bytes] = []
    other = threading.Thread(target=lambda: found.append(cold.read(5, 10)))
    other.start()
    other.join()
    assert found == [bytes(10)]
    disk.relax()
    assert cold.read(5, 10) == bytes(10)


def test_nobody_asks_for_what_was_just_appended(disk: OsDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr(osfile, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(page_cache, "has", lambda fd, position, end: False)
    file = disk.open("t-0/fresh", create=True)
    assert file.is_warm(0, 10)
    file.append(bytes(10))
    now_s[0] += 5
    assert file.is_warm(0, 10)
    now_s[0] += 10  # one period is over
    file.append(bytes(10))
    assert file.is_warm(0, 10)
    now_s[0] += 10
    assert not file.is_warm(0, 10) and file.is_warm(20, 10)
    file.append(bytes(10))
    now_s[0] += 100
    assert not file.is_warm(20, 10)


def test_who_reads_on_asks_once_for_many_batches(disk: OsDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """And asks for no more than it needs where what lies behind is cold."""
    now_s, end_of_warm, asked = [100.0], MIB, [0]

    def has(fd: int, position: int, end: int) -> bool:
        asked[0] += 1
        return end <= end_of_warm

    monkeypatch.setattr(osfile, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(page_cache, "has", has)
    file = disk.open("t-0/old", create=True)
    file.append(bytes(2 * MIB))
    now_s[0] += 100
    assert all(file.is_warm(position, 1_000) for position in range(0, 100_000, 1_000))
    assert asked[0] == 1
    now_s[0] += 2
    assert file.is_warm(0, 1_000) and asked[0] == 2
    assert file.is_warm(MIB - 1_000, 1_000) and not file.is_warm(MIB - 1_000, 1_001)
    disk.slow, before = True, asked[0]
    assert file.is_warm(0, 1_000) and file.is_warm(0, 1_000) and asked[0] == before + 2


def test_the_kernel_says_what_is_in_memory(disk: OsDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osfile, "FRESH_S", 0)
    file = disk.open("t-0/real", create=True)
    file.append(bytes(MIB))
    assert file.is_warm(0, MIB)  # also where it cannot tell
    file.sync()
    os.posix_fadvise(file._fd, 0, 0, os.POSIX_FADV_DONTNEED)  # which the kernel may or may not do
    file.warm(0, MIB)
    assert file.is_warm(0, MIB)


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_what_lost_its_name_need_not_be_synced(disk: OsDisk, how: str) -> None:
    """A log's sync may have to wait, and holds files that retention or a new leader replaces or removes meanwhile. A
    sync that fails takes the end of the log with it."""
    file = disk.open("t-0/leader-epoch-checkpoint", create=True)
    file.append(b"old")
    if how == "replaced":
        disk.open("t-0/new", create=True).append(b"new")
        disk.rename("t-0/new", "t-0/leader-epoch-checkpoint")
    else:
        disk.remove("t-0/leader-epoch-checkpoint")
    file.sync()
    with pytest.raises(StorageError):
        file.read(0, 3)
