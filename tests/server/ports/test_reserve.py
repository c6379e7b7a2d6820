"""The reserve of a data directory: it has its size if there is room, gives way in steps, and only to some."""

import errno
import os
from pathlib import Path

import pytest

from ottla.log.files.disk import StorageError
from ottla.model.limits import RESERVE_BYTES, RESERVE_STEP_BYTES
from ottla.server.ports.disk_reserve import NAME, Reserve, may_use
from ottla.server.ports.os_disk import OsDisk


@pytest.mark.parametrize(
    ("path", "entitled"),
    [
        ("recovery-point-offset-checkpoint.tmp", True),
        (".kafka_cleanshutdown.tmp", True),
        ("__cluster_metadata-0/00000000000000000000.log", True),
        ("__cluster_metadata-0/quorum-state.tmp", True),
        ("__cluster_metadata-0/00000000000000000042-0000000001.checkpoint.part", False),
        ("t-0/00000000000000000000.log", False),
        ("t-0/00000000000000000000.log.cleaned", False),
        ("__cluster_metadata-0/00000000000000000000.index", True),
        ("t-0/00000000000000000000.index", False),
        ("t-0/00000000000000000000.timeindex", False),
        ("t-0/00000000000000000042.snapshot", False),
        ("t-0/00000000000000000042.snapshot.tmp", False),
        ("t-0/leader-epoch-checkpoint.tmp", True),
        ("t-0/partition.metadata.tmp", False),
    ],
)
def test_who_may_use_it(path: str, entitled: bool) -> None:
    assert may_use(path) is entitled


def test_it_gives_way_in_steps_and_is_filled_again(tmp_path: Path) -> None:
    reserve = Reserve(str(tmp_path))
    assert not reserve.lend(1), "there is none yet"
    reserve.fill()
    size = (tmp_path / NAME).stat
    assert size().st_size == RESERVE_BYTES and size().st_blocks * 512 >= RESERVE_BYTES
    assert reserve.lend(10) and size().st_size == RESERVE_BYTES - RESERVE_STEP_BYTES
    assert reserve.lend(3 * RESERVE_STEP_BYTES) and size().st_size == RESERVE_BYTES - 4 * RESERVE_STEP_BYTES
    reserve.fill()
    assert size().st_size == RESERVE_BYTES
    while reserve.lend(1):
        pass
    assert size().st_size == 0


def test_who_wants_more_than_there_is_gets_nothing(tmp_path: Path) -> None:
    reserve = Reserve(str(tmp_path))
    reserve.fill()
    assert not reserve.lend(RESERVE_BYTES + 1)
    assert (tmp_path / NAME).stat().st_size == RESERVE_BYTES
    assert reserve.lend(RESERVE_BYTES) and not reserve.lend(1)


@pytest.mark.parametrize("full", [errno.ENOSPC, errno.EDQUOT])
def test_a_reserve_for_which_there_is_no_room_yet_is_filled_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: int
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(full, "full")

    reserve = Reserve(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", no_room)
        reserve.fill()
    assert (tmp_path / NAME).stat().st_size == 0
    reserve.fill()
    assert (tmp_path / NAME).stat().st_size == RESERVE_BYTES


@pytest.mark.parametrize("full", [errno.ENOSPC, errno.EDQUOT])
def test_writes_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: int) -> None:
    """Simulated: a write succeeds when the reserve has given way twice."""

    def pwrite(fd: int, data: bytes, position: int) -> int:
        if (tmp_path / NAME).stat().st_size > RESERVE_BYTES - 2 * RESERVE_STEP_BYTES:
            raise OSError(full, "full")
        return honest(fd, data, position)

    honest = os.pwrite
    disk = OsDisk(str(tmp_path))
    disk.keep_reserve()
    disk.make_directory("t-0")
    checkpoint, records = disk.open("offsets.tmp", create=True), disk.open("t-0/00000000000000000000.log", create=True)
    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(StorageError):
        records.append(b"records")
    assert (tmp_path / NAME).stat().st_size == RESERVE_BYTES, "records get nothing of it"
    checkpoint.append(b"offsets")
    assert checkpoint.read(0, 10) == b"offsets" and checkpoint.size == 7 and records.size == 0
    disk.close()
