"""Checks of the disk below a data directory, and of this machine: room, file system, speed, descriptors, clock."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.operations.doctor.check import Symptom, UnseenError
from ottla.operations.doctor.data.directory_seen import DATA, DirectorySeen
from ottla.operations.doctor.thresholds import CLOCK_OFF_S, room_symptom

_UNFIT = {
    "tmpfs": "it is in memory: all is gone when the machine restarts",
    "ramfs": "it is in memory: all is gone when the machine restarts",
}
_REMOTE = ("nfs", "cifs", "smb", "fuse", "9p", "vboxsf")
_REMOTE_WHY = "locks, fsync and what is in the page cache are not what they are on a disk of the machine's own"
_SLOW_MS = 100.0
_SYNCS = 5
_SYNCED_BYTES = 4096
_DESCRIPTORS_MIN = 4096
_MOUNTS = Path("/proc/self/mountinfo")


@DATA.check(
    "disk-full",
    "The disk of the directory is full, or nearly",
    why="A full disk refuses records, and what is led there stops.",
    do="delete what can go (`ottla topic alter NAME retention.ms=…`), or move partitions (`ottla cluster drain`)",
)
def disk_full(directory: DirectorySeen) -> Iterator[Symptom]:
    room = shutil.disk_usage(directory.path)
    yield from room_symptom("the disk", room.free, room.total)


@DATA.check(
    "filesystem-unfit",
    "A file system that keeps no promises",
    why="What the node syncs has to be on a disk of this machine afterwards.",
    do="log.dirs on ext4, xfs or btrfs on a disk of the machine's own",
)
def filesystem_unfit(directory: DirectorySeen) -> Iterator[Symptom]:
    kind = filesystem_of(directory.path)
    if kind in _UNFIT:
        yield Symptom(f"the file system is {kind}", why=_UNFIT[kind])
    elif kind.startswith(_REMOTE):
        yield Symptom(f"the file system is {kind}", why=_REMOTE_WHY)


def filesystem_of(path: Path) -> str:
    """The type of the file system of a path, from the mounts that Linux lists."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        raise UnseenError(f"{_MOUNTS} cannot be read") from None
    device = path.stat().st_dev
    for fields in map(str.split, lines):
        if fields[2] == f"{os.major(device)}:{os.minor(device)}":
            return fields[fields.index("-") + 1]
    raise UnseenError(f"{_MOUNTS} does not name the file system")


@DATA.check(
    "disk-slow",
    "A sync takes long",
    why="Whoever waits for a sync (ottla.fsync.before.ack, the metadata quorum) waits at least so long.",
    do="a faster disk, or one that is not shared; metadata.log.dir on a disk of its own",
)
def disk_slow(directory: DirectorySeen) -> Iterator[Symptom]:
    took_ms = []
    with tempfile.TemporaryFile(dir=directory.path) as file:  # it has no name, so that no node stumbles over it
        for _ in range(_SYNCS):
            os.write(file.fileno(), bytes(_SYNCED_BYTES))
            begun_s = time.perf_counter()
            os.fsync(file.fileno())
            took_ms.append((time.perf_counter() - begun_s) * 1000)
    median_ms = statistics.median(took_ms)
    if median_ms > _SLOW_MS:
        yield Symptom(f"{_SYNCS} syncs of {_SYNCED_BYTES} bytes took {median_ms:.0f} ms each")


@DATA.check(
    "descriptors-few",
    "This user may open few files",
    why="Each partition in use needs some descriptors and each connection one; a node takes fewer clients with less.",
    do="ulimit -Hn 100000, LimitNOFILE=100000 in the unit of systemd, or limits.conf",
)
def descriptors_few(_: DirectorySeen) -> Iterator[Symptom]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < _DESCRIPTORS_MIN:
        yield Symptom(f"at most {hard} descriptors, in this shell")


@DATA.check(
    "clock-jumped",
    "Files from the future",
    why="The machine's clock was ahead once, or is behind now: retention by time deletes too late or too early, and "
    "timestamps of records are wrong.",
    do="timedatectl shows the clock and whether it follows others; switch NTP on",
)
def clock_jumped(directory: DirectorySeen) -> Iterator[Symptom]:
    now_s = time.time()
    newest_s, newest = max(
        ((each.stat().st_mtime, each) for each in directory.path.glob("*/*.log")), default=(0.0, directory.path)
    )
    if newest_s > now_s + CLOCK_OFF_S:
        name = newest.relative_to(directory.path)
        yield Symptom(f"{name} was written {(newest_s - now_s) / 3600:.1f} hours from now")
