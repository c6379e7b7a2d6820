"""The recovery point with default settings: it follows the segments that ended, in the background, and what a start
after a crash reads follows from it."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import create, eventually, produce
from tests.support.requests.raw import RawConnection

from ottla.log.files import checkpoint
from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.log.recovery.recover import _Recovery
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.ports.os_disk import OsDisk, OsFile
from ottla.server.storage import recovery
from ottla.testing.broker import EmbeddedBroker

SEGMENT_BYTES = 3_000
SETTINGS: dict[str, object] = {"log.flush.offset.checkpoint.interval.ms": 50}
WAIT_S = 60


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "data", SETTINGS) as broker:
        yield broker


def partition_of(broker: EmbeddedBroker, index: int = 0) -> Partition:
    assert broker.node is not None
    return broker.node.partitions.find("t", index)


def fill(connection: RawConnection, segments: int, index: int = 0) -> None:
    """Appends until so many segments have ended: each record is a third of one."""
    for _ in range(2 * segments + 1):
        assert produce(connection, "t", [b"x" * 1_000], index=index)[0] == 0


def checkpointed(data_dir: Path, index: int = 0) -> int:
    offsets = checkpoint.read_offsets(OsDisk(str(data_dir)), checkpoint.RECOVERY_POINTS)
    return offsets.get(TopicPartition("t", index), 0)


def killed(broker: EmbeddedBroker, target: Path) -> Path:
    """The files of a node that runs, as kill -9 would leave them; taken when nothing happens to them."""

    def copied() -> bool:
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.copytree(broker.data_dir, target, ignore=shutil.ignore_patterns("*.tmp"))
        except shutil.Error:
            return False
        return not list(target.glob("t-*/*.seam"))

    eventually(copied, "what is under way is done")
    return target


@pytest.fixture
def rebuilt(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The segments of t that a recovery reads."""
    found: list[int] = []
    honest = _Recovery._rebuild

    def rebuild(self: _Recovery, segment: Any, following: int | None) -> Any:
        if segment.directory.path.startswith("t-"):
            found.append(segment.base_offset)
        return honest(self, segment, following)

    monkeypatch.setattr(_Recovery, "_rebuild", rebuild)
    return found


def test_the_recovery_point_follows_with_default_settings(
    broker: EmbeddedBroker, tmp_path: Path, rebuilt: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", internal_segment_bytes=SEGMENT_BYTES)
        fill(connection, 30)
    log = partition_of(broker).log
    assert len(log.segments) == 31
    eventually(lambda: log.recovery_point > log.active.base_offset, "the segments that ended are synced")
    eventually(lambda: checkpointed(tmp_path / "data") > log.active.base_offset, "the checkpoint follows")
    assert not list((tmp_path / "data" / "t-0").glob("*.seam"))
    copy, end = killed(broker, tmp_path / "killed"), log.next_offset
    with caplog.at_level(logging.INFO), EmbeddedBroker(copy, SETTINGS) as again:
        assert partition_of(again).log.next_offset == end
    assert rebuilt == [log.active.base_offset], "the end of the log alone is read"
    assert "was not closed in order: recovering 1 logs, 2 at a time" in caplog.text
    assert "recovered 1 logs in" in caplog.text


def test_what_recovery_has_read_is_synced_afterwards(
    broker: EmbeddedBroker, tmp_path: Path, rebuilt: list[int]
) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", internal_segment_bytes=SEGMENT_BYTES)
        fill(connection, 10)
    copy = killed(broker, tmp_path / "killed")
    (copy / checkpoint.RECOVERY_POINTS).write_text("0\n0\n")  # as if it had never been written
    with EmbeddedBroker(copy, SETTINGS) as again:
        log = partition_of(again).log
        assert len(rebuilt) == len(log.segments) == 11
        eventually(lambda: checkpointed(copy) == log.next_offset, "nobody wrote anything, and the point is raised")


@pytest.mark.parametrize("threads", [3, 1])
def test_a_directory_is_recovered_by_as_many_threads_as_it_may(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 6)
        for index in range(6):
            produce(connection, "t", [b"x"], index=index)
    copy = killed(broker, tmp_path / "killed")
    honest = Log.open.__func__  # type: ignore[attr-defined]
    together = threading.Barrier(threads)
    running: list[str] = []
    most: list[int] = []

    def open_log(cls: Any, disk: Any, name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("t-"):
            running.append(name)
            most.append(len(running))
            together.wait(WAIT_S)
            running.remove(name)
        return honest(cls, disk, name, *args, **options)

    monkeypatch.setattr(Log, "open", classmethod(open_log))
    with EmbeddedBroker(copy, SETTINGS | {"num.recovery.threads.per.data.dir": threads}) as again:
        assert [partition_of(again, index).log.next_offset for index in range(6)] == [1] * 6
    assert max(most) == threads


def test_long_recoveries_tell_how_far_they_are(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 2, internal_segment_bytes=SEGMENT_BYTES)
        fill(connection, 4)
        produce(connection, "t", [b"x"], index=1)
    copy = killed(broker, tmp_path / "killed")
    (copy / checkpoint.RECOVERY_POINTS).write_text("0\n0\n")
    monkeypatch.setattr(recovery, "TELL_BYTES", 2 * SEGMENT_BYTES)
    with caplog.at_level(logging.INFO), EmbeddedBroker(copy, SETTINGS):
        told = [line for line in caplog.messages if "recovering t-0: " in line]
    assert 1 <= len(told) <= 3
    assert all("of 2 logs are left" in line for line in told)


class Gate:
    """Holds up the syncs of some segment files of t, and can make them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.running: dict[str, None] = {}
        self.most = 0
        self.fails = False
        self._lock = threading.Lock()
        honest = OsFile.sync

        def sync(file: OsFile) -> None:
            if file.path.startswith("t-") and file.name == f"{0:020d}.log":
                with self._lock:
                    self.running[file.path] = None
                    self.most = max(self.most, len(self.running))
                assert self.open.wait(WAIT_S)
                with self._lock:
                    del self.running[file.path]
                if self.fails:
                    raise StorageError(5, "no")
            honest(file)

        monkeypatch.setattr(OsFile, "sync", sync)


def test_a_few_segments_at_a_time_and_nobody_waits_for_them(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 5, internal_segment_bytes=SEGMENT_BYTES)
        create(connection, "durable", ottla_fsync_before_ack="true")
        for index in range(5):
            fill(connection, 2, index)
        eventually(lambda: len(gate.running) == limits.SEALED_SYNCS_AT_ONCE, "two are under way")
        assert produce(connection, "durable", [b"x"]) == (0, 0)
        assert all(partition_of(broker, index).log.recovery_point == 0 for index in range(5))
        gate.open.set()
        for index in range(5):
            log = partition_of(broker, index).log
            eventually(lambda log=log: log.recovery_point > log.active.base_offset, "all get their turn")
    assert gate.most == limits.SEALED_SYNCS_AT_ONCE


def test_a_segment_that_cannot_be_synced_costs_nothing_that_was_acknowledged(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    gate.fails = True
    gate.open.set()
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", internal_segment_bytes=SEGMENT_BYTES)
        fill(connection, 2)
        assert broker.node is not None
        syncer, log = broker.node.storage.syncer, partition_of(broker).log
        eventually(lambda: broker.node.storage.directories[0].failure is not None, "the failure is noted")
        assert (log.recovery_point, log.next_offset) == (0, 5)
        gate.fails = False
        fill(connection, 1)
        eventually(
            lambda: log.recovery_point > log.active.base_offset and not syncer._running, "the next roll tries it"
        )


def test_a_cut_lowers_the_checkpoint_at_once(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Else a start would believe without a look what was written where the cut was."""
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", internal_segment_bytes=SEGMENT_BYTES)
        fill(connection, 4)
    node, partition = broker.node, partition_of(broker)
    assert node is not None and broker._thread.loop is not None
    eventually(lambda: checkpointed(tmp_path / "data") > partition.log.active.base_offset, "it is on disk")
    asked: list[bool] = []

    def cut() -> None:
        partition.truncate_to(3)
        node.storage.cut(partition)
        asked.append(node.storage.upkeep._too_high.is_set())

    broker._thread.loop.call_soon_threadsafe(cut)
    eventually(lambda: checkpointed(tmp_path / "data") <= 3, "the checkpoint is lowered")
    assert asked == [True]
