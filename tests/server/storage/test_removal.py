"""Partition directories on their way out."""

from __future__ import annotations

from ottla.log.config import LogConfig
from ottla.log.files.disk import Directory
from ottla.log.log import Log
from ottla.server.storage.removal import Doomed, Removal, mark_deleted, remove_all, set_aside
from ottla.sim.world.disk import SimDisk

ID = bytes(range(16))


def test_renamed_now_and_removed_later() -> None:
    disk = SimDisk()
    log = Log.open(disk, "topic-0", LogConfig(), now_ms=0, topic_id=ID)
    mark_deleted(log.directory, ID)
    assert disk.list("") == [f"topic-0.{ID.hex()}-delete"]
    Doomed(log.directory, log).remove()
    assert disk.list("") == []


def test_a_long_name_is_shortened() -> None:
    disk = SimDisk()
    for act, suffix in ((mark_deleted, "-delete"), (set_aside, "-stray")):
        home = Directory(disk, "x" * 247 + "-0")
        disk.make_directory(home.path)
        act(home, ID)
        assert len(home.path) == 255
        assert home.path.endswith(f".{ID.hex()}{suffix}")


def test_the_earliest_due_go_first() -> None:
    removal = Removal()
    disk = SimDisk()
    for number, due_ms in enumerate((30, 10, 20, 10)):
        disk.make_directory(f"d{number}")
        removal.add(due_ms, Doomed(Directory(disk, f"d{number}")))
    assert removal.take_due(9, 10) == []
    assert [doomed.directory.path for doomed in removal.take_due(20, 2)] == ["d1", "d3"]
    due = removal.take_due(20, 2)
    assert [doomed.directory.path for doomed in due] == ["d2"]
    remove_all(due)
    assert len(removal) == 1
    assert disk.list("") == ["d0", "d1", "d3"]


def test_a_directory_that_resists_does_not_stop_the_others() -> None:
    disk = SimDisk()
    disk.make_directory("stuck")
    disk.make_directory("stuck/inside")
    disk.open("stuck/inside/file", create=True)
    disk.make_directory("easy")
    remove_all([Doomed(Directory(disk, "stuck")), Doomed(Directory(disk, "easy"))])
    assert disk.list("") == ["stuck"]
