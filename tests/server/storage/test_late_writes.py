"""Files of a disk that makes its writers wait: what is appended is written by a worker, while the loop goes on."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from ottla.log.files.disk import StorageError
from ottla.server.ports import os_file as osfile
from ottla.server.ports.os_disk import OsDisk, OsFile

TIMEOUT_S = 60


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[OsDisk]:
    disk = OsDisk(str(tmp_path))
    yield disk
    disk.close()


@pytest.fixture
def file(disk: OsDisk) -> OsFile:
    file = disk.open("f", create=True)
    file.append(b"0123")
    return file


class Gate:
    """The next write of a worker is done when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pwrite = os.pwrite
        self._begun, self._may_end = threading.Event(), threading.Event()
        self.error: OSError | None = None
        monkeypatch.setattr(os, "pwrite", self.pwrite)

    def pwrite(self, fd: int, data: bytes, position: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            self._begun.set()
            assert self._may_end.wait(TIMEOUT_S)
            if self.error is not None:
                self._pwrite(fd, data[:1], position)
                raise self.error
        return self._pwrite(fd, data, position)

    def begin(self, file: OsFile, write: Callable[[], None] | None = None) -> threading.Thread:
        worker = threading.Thread(target=write or partial(self._write, file))
        worker.start()
        assert self._begun.wait(TIMEOUT_S)
        return worker

    def _write(self, file: OsFile) -> None:
        if self.error is None:
            file.write_waiting()
        else:
            with pytest.raises(StorageError):
                file.write_waiting()

    def end(self, worker: threading.Thread) -> None:
        self._may_end.set()
        worker.join(TIMEOUT_S)
        assert not worker.is_alive()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def content(disk: OsDisk) -> bytes:
    return (Path(disk.root) / "f").read_bytes()


def test_nobody_waits_for_a_write_under_way(disk: OsDisk, file: OsFile, gate: Gate) -> None:
    file.append_later(b"45")
    file.append_later(b"67")
    worker = gate.begin(file)
    file.append_later(b"89")
    assert (file.size, file.written, content(disk)) == (10, 4, b"0123")
    assert [file.read(0, 100), file.read(3, 2), file.read(5, 3), file.read(9, 9)] == [
        b"0123456789",
        b"34",
        b"567",
        b"9",
    ]
    gate.end(worker)
    assert (file.size, file.written, content(disk)) == (10, 10, b"0123456789")


@pytest.mark.parametrize(
    ("cut", "before", "after"),
    [(6, b"012345", b"012345xy"), (5, b"01234", b"01234xy"), (4, b"0123", b"0123xy"), (2, b"01", b"01xy")],
)
def test_what_is_cut_while_it_is_written_does_not_come_back(
    disk: OsDisk, file: OsFile, gate: Gate, cut: int, before: bytes, after: bytes
) -> None:
    """However the write ends: behind what is appended then there is nothing."""
    file.append_later(b"45")
    file.append_later(b"6789")
    worker = gate.begin(file)
    file.truncate(cut)
    assert file.read(0, 100) == before
    file.append_later(b"xy")
    assert file.read(0, 100) == after
    gate.end(worker)
    assert (content(disk), file.read(0, 100), file.size, file.written) == (after, after, len(after), len(after))


def test_an_append_on_the_loop_waits_for_a_write_that_was_cut(disk: OsDisk, file: OsFile, gate: Gate) -> None:
    file.append_later(b"45678")
    worker = gate.begin(file)
    file.truncate(4)
    ending = threading.Timer(0.05, gate.end, (worker,))
    ending.start()
    file.append(b"x")
    ending.join()
    assert content(disk) == b"0123x"


def test_a_write_that_fails_leaves_nothing_behind(disk: OsDisk, file: OsFile, gate: Gate) -> None:
    gate.error = OSError(errno.ENOSPC, "full")
    file.append_later(b"45")
    file.append_later(b"67")
    gate.end(gate.begin(file))
    assert (file.written, file.size, content(disk)) == (4, 8, b"0123")
    file.truncate(file.written)
    file.append(b"x")
    assert content(disk) == b"0123x"


def test_a_file_that_is_removed_waits_for_nothing(disk: OsDisk, file: OsFile, gate: Gate) -> None:
    file.append_later(b"45")
    file.append_later(b"67")
    worker = gate.begin(file)
    disk.remove("f")
    gate.end(worker)
    assert not (Path(disk.root) / "f").exists()
    file.write_waiting()


def test_a_read_before_what_waits_asks_for_no_more_than_is_wanted(
    file: OsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    pread, asked = os.pread, []

    def spy(fd: int, size_bytes: int, position: int) -> bytes:
        asked.append(size_bytes)
        return pread(fd, size_bytes, position)

    monkeypatch.setattr(os, "pread", spy)
    file.append_later(b"45")
    assert [file.read(1, 2), file.read(3, 2), file.read(4, 1), file.read(0, 0)] == [b"12", b"34", b"4", b""]
    assert asked == [2, 1, 0]


def test_nobody_waits_for_what_is_written_again(disk: OsDisk, file: OsFile, gate: Gate) -> None:
    worker = gate.begin(file, partial(file.write_again, 0, 100))
    appending = threading.Thread(target=lambda: [file.append_later(b"45"), file.read(0, 6)])
    appending.start()
    appending.join(1)
    waits = appending.is_alive()
    gate.end(worker)
    appending.join(TIMEOUT_S)
    assert not waits
    file.write_waiting()
    assert content(disk) == b"012345"


def test_what_is_cut_while_it_is_written_again_does_not_come_back(disk: OsDisk, file: OsFile, gate: Gate) -> None:
    worker = gate.begin(file, partial(file.write_again, 0, 100))
    cutting = threading.Thread(target=file.truncate, args=(2,))
    cutting.start()
    cutting.join(1)
    gate.end(worker)
    cutting.join(TIMEOUT_S)
    assert (content(disk), file.read(0, 100)) == (b"01", b"01")
    file.append(b"x")
    assert content(disk) == b"01x"


def test_nothing_is_appended_before_what_waits(file: OsFile) -> None:
    file.append_later(b"45")
    with pytest.raises(AssertionError):
        file.append(b"67")


def test_a_sync_comes_after_what_waits(disk: OsDisk, file: OsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(osfile, "_fdatasync", lambda fd: synced.append(content(disk)))
    file.append_later(b"45")
    file.sync()
    assert synced == [b"012345"]


def test_one_slow_write_makes_a_directory_slow_until_none_was_for_a_while(
    disk: OsDisk, file: OsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, takes_s = [0.0], [0.001]
    pwrite = os.pwrite

    def slow(fd: int, data: bytes, position: int) -> int:
        now_s[0] += takes_s[0]
        return pwrite(fd, data, position)

    def write() -> bool:
        if disk.slow:
            file.append_later(b"x")
            file.write_waiting()
        else:
            file.append(b"x")
        return disk.slow

    monkeypatch.setattr(os, "pwrite", slow)
    monkeypatch.setattr(osfile, "monotonic", lambda: now_s[0])
    assert not write()
    takes_s[0] = 0.1
    assert write(), "a worker has to try"
    takes_s[0] = 0.001
    assert not write(), "it was not the disk"
    takes_s[0] = 0.1
    assert write()
    assert write(), "it is the disk"
    takes_s[0] = 0.001
    assert write()
    now_s[0] += 0.9
    assert write()
    now_s[0] += 0.1
    assert not write()
    assert content(disk) == b"0123xxxxxxxx"


def test_a_directory_whose_logs_cannot_wait_is_quick_again_as_well(
    disk: OsDisk, file: OsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(osfile, "monotonic", lambda: now_s[0])
    disk.wrote(0.1, 0.0)
    file.append(b"x")
    assert disk.slow
    now_s[0] = 1.0
    file.append(b"x")
    assert not disk.slow
