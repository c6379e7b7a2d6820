"""Opening a directory after every kind of end: a matrix of what may be left behind."""

import random
from collections.abc import Callable
from zlib import crc32

import pytest
from tests.log.logs import (
    DIRECTORY,
    NOW_MS,
    aborted,
    append,
    batch,
    check_indexes,
    open_log,
    read_batches,
    read_records,
)

from ottla.log.config import LogConfig
from ottla.log.files.disk import DamagedError, StorageError
from ottla.log.log import Log, Origin
from ottla.log.recovery.leftovers import is_deleted_directory
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.sim.world.disk import Crash, SimDisk

SIZE = len(batch(3))
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE)  # segments at 0, 12, 24
ACTIVE = f"{DIRECTORY}/00000000000000000024"
MIDDLE = f"{DIRECTORY}/00000000000000000012"


def filled(*, close: bool = False) -> SimDisk:
    """Ten batches of three records in three segments, by producer 7; epoch 1 from offset 15 on."""
    disk = SimDisk()
    log = open_log(disk, CONFIG)
    for i in range(10):
        append(log, batch(3, timestamp=NOW_MS + i, producer=7, sequence=3 * i), epoch=int(i >= 5))
    if close:
        log.close()
    return disk


def check_whole(log: Log, end: int = 30) -> None:
    assert [record.offset for record in read_records(log)] == list(range(end))
    assert log.next_offset == end
    check_indexes(log)
    if end > 15:
        assert log.epochs.entries == [(0, 0), (1, 15)]
    state = log.producers.get(7)
    assert (state.last_sequence if state else -1) == end - 1
    appended = append(log, batch(3, producer=7, sequence=end, timestamp=NOW_MS + 99), epoch=2)
    assert appended.first_offset == end


def cut(name: str, size: int) -> Callable[[SimDisk], None]:
    return lambda disk: disk.open(name).truncate(size)


def add(name: str, data: bytes) -> Callable[[SimDisk], None]:
    return lambda disk: disk.open(name, create=True).append(data)


def overwrite(name: str, position: int, data: bytes) -> Callable[[SimDisk], None]:
    return lambda disk: disk.open(name).write(position, data)


def remove(name: str) -> Callable[[SimDisk], None]:
    return lambda disk: disk.remove(name)


def remove_all(ending: str) -> Callable[[SimDisk], None]:
    def change(disk: SimDisk) -> None:
        for path in disk.paths():
            if path.endswith(ending):
                disk.remove(path)

    return change


# What happened to the files -> where the log must end.
DAMAGE: dict[str, tuple[Callable[[SimDisk], None], int]] = {
    "nothing": (lambda disk: None, 30),
    "the last batch is cut off": (cut(f"{ACTIVE}.log", 2 * SIZE - 1), 27),
    "only a piece of a header is left": (cut(f"{ACTIVE}.log", SIZE + 20), 27),
    "the last batch is zeros": (overwrite(f"{ACTIVE}.log", SIZE, bytes(SIZE)), 27),
    "zeros follow the last batch": (add(f"{ACTIVE}.log", bytes(5_000)), 30),
    "garbage follows the last batch": (add(f"{ACTIVE}.log", random.Random(1).randbytes(3_000)), 30),
    "a bit of the last batch flipped": (overwrite(f"{ACTIVE}.log", 2 * SIZE - 3, b"?"), 27),
    "a bit of the first batch of the tail flipped": (overwrite(f"{ACTIVE}.log", 70, b"?"), 24),
    "the tail is empty": (cut(f"{ACTIVE}.log", 0), 24),
    "an older segment lost its end": (cut(f"{MIDDLE}.log", 2 * SIZE + 7), 18),
    "a bit of an older segment flipped": (overwrite(f"{MIDDLE}.log", SIZE + 70, b"?"), 15),
    "an older segment's index is gone": (remove(f"{MIDDLE}.index"), 30),
    "an older segment's time index is gone": (remove(f"{MIDDLE}.timeindex"), 30),
    "an older segment's index is damaged": (cut(f"{MIDDLE}.index", 13), 30),
    "all indexes are gone": (remove_all("index"), 30),
    "an index points beyond its file": (overwrite(f"{MIDDLE}.index", 4, b"\0\1\0\0"), 30),
    "a snapshot is damaged": (overwrite(f"{ACTIVE}.snapshot", 20, b"?"), 30),
    "the snapshots are gone": (remove_all(".snapshot"), 30),
    "a snapshot of the future": (add(f"{DIRECTORY}/00000000000000000099.snapshot", b"whatever"), 30),
    "the epochs are gone": (remove(f"{DIRECTORY}/leader-epoch-checkpoint"), 30),
    "the epochs are damaged": (add(f"{DIRECTORY}/leader-epoch-checkpoint", b"?\n"), 30),
    "epochs of the future": (
        lambda disk: disk.open(f"{DIRECTORY}/leader-epoch-checkpoint").write(0, b"0\n3\n0 0\n1 15\n8 70\n"),
        30,
    ),
    "an unfinished compaction": (add(f"{DIRECTORY}/00000000000000000000.log.cleaned", b"half"), 30),
    "deleted files": (add(f"{DIRECTORY}/00000000000000000000.log.deleted", b"old"), 30),
    "an index without its log": (add(f"{DIRECTORY}/00000000000000000003.index", bytes(8)), 30),
    "an unfinished checkpoint": (add(f"{DIRECTORY}/leader-epoch-checkpoint.tmp", b"0\n"), 30),
    "files that are none of ours": (add(f"{DIRECTORY}/notes.txt", b"hello"), 30),
}


@pytest.mark.parametrize(("damage", "end"), DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("closed", [False, True], ids=["killed", "closed"])
def test_matrix(damage: Callable[[SimDisk], None], end: int, closed: bool) -> None:
    disk = filled(close=closed)
    damage(disk)
    log = open_log(disk, CONFIG)
    check_whole(log, end)
    left = [name for name in disk.list(DIRECTORY) if name.endswith((".cleaned", ".deleted", ".swap", ".tmp"))]
    assert not left


REPAIRABLE = [name for name, (_, end) in DAMAGE.items() if end == 30]


@pytest.mark.parametrize("name", REPAIRABLE)
def test_a_clean_start_repairs_what_it_can(name: str) -> None:
    """The clean mark vouches for the log files; what is derived from them may have been deleted by hand."""
    disk = filled(close=True)
    DAMAGE[name][0](disk)
    log = open_log(disk, CONFIG, clean=True)
    assert [record.offset for record in read_records(log)] == list(range(30))
    check_indexes(log)


# What cannot be mended from anything else: records that were acknowledged, and closed in order, are not there.
LOST: dict[str, Callable[[SimDisk], None]] = {
    "the last batch is cut off": cut(f"{ACTIVE}.log", 2 * SIZE - 1),
    "only a piece of a header is left": cut(f"{ACTIVE}.log", SIZE + 20),
    "the last batch is gone without a trace": cut(f"{ACTIVE}.log", SIZE),
    "the tail is empty": cut(f"{ACTIVE}.log", 0),
    "the tail is gone": remove(f"{ACTIVE}.log"),
    "the last batch is zeros": overwrite(f"{ACTIVE}.log", SIZE, bytes(SIZE)),
    "the last batch is said to be longer": overwrite(f"{ACTIVE}.log", SIZE + 10, b"\7"),
    "the last batch is said to be negative": overwrite(f"{ACTIVE}.log", SIZE + 8, b"\xff"),
    "the last batch is said to be shorter": overwrite(f"{ACTIVE}.log", SIZE + 11, b"\x40"),
    "the last batch has another magic": overwrite(f"{ACTIVE}.log", SIZE + 16, b"\3"),
    "the batch before it has another magic": overwrite(f"{ACTIVE}.log", 16, b"\0"),
    "the last batch begins elsewhere": overwrite(f"{ACTIVE}.log", SIZE + 7, b"\2"),
}
UNINDEXED = LOST | {
    "an older segment lost its end": cut(f"{MIDDLE}.log", 2 * SIZE + 7),
    "a batch of an older segment has another magic": overwrite(f"{MIDDLE}.log", SIZE + 16, b"\3"),
}


@pytest.mark.parametrize(
    ("damage", "indexed"), [(each, True) for each in LOST.values()] + [(each, False) for each in UNINDEXED.values()]
)
def test_a_clean_start_cuts_nothing(damage: Callable[[SimDisk], None], indexed: bool) -> None:
    """It refuses, again and again. A start after a crash cuts, as Kafka's does."""
    disk = filled(close=True)
    if not indexed:
        remove_all("index")(disk)
    damage(disk)
    before = {path: disk.content(path) for path in disk.paths() if path.endswith(".log")}
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"closed in order|is no batch"):
            open_log(disk, CONFIG, clean=True, recovery_point=30)
        assert {path: disk.content(path) for path in disk.paths() if path.endswith(".log")} == before
    log = open_log(disk, CONFIG)
    assert log.next_offset < 30
    check_whole(log, log.next_offset)


def test_a_clean_start_without_a_witness_cuts_nothing() -> None:
    """Snapshots tell where a log was closed; if they are gone, what is no batch may have been one."""
    disk = filled(close=True)
    remove_all(".snapshot")(disk)
    disk.open(f"{ACTIVE}.log").append(bytes(100))
    with pytest.raises(DamagedError, match="is no batch"):
        open_log(disk, CONFIG, clean=True, recovery_point=30)


def test_a_clean_start_reads_next_to_nothing() -> None:
    disk = filled(close=True)
    before = disk.paths()
    operations: list[str] = []
    disk.on_operation = lambda what, path, size: operations.append(f"{what} {path}")
    log = open_log(disk, CONFIG, clean=True)
    assert operations == [] and disk.paths() == before
    assert (log.recovery_point, log.next_offset) == (30, 30)
    check_whole(log)


@pytest.mark.parametrize(("recovery_point", "scanned"), [(0, 3), (11, 3), (12, 3), (13, 2), (24, 2), (25, 1), (30, 1)])
def test_only_the_tail_is_scanned(recovery_point: int, scanned: int) -> None:
    """The segment that holds the last synced record is looked at again; all before it are believed."""
    disk = filled(close=True)
    told: list[tuple[int, int]] = []
    log = Log.open(
        disk,
        DIRECTORY,
        CONFIG,
        now_ms=NOW_MS,
        recovery_point=recovery_point,
        progress=lambda done, total: told.append((done, total)),
    )
    sizes = [segment.size_bytes for segment in log.segments]
    assert told[-1] == (sum(sizes[-scanned:]), sum(sizes[-scanned:]))
    check_whole(log)


def test_below_the_recovery_point_bytes_are_believed() -> None:
    """Their CRC is not computed again: what was synced is the disk's business, and readers check it anyway."""
    disk = filled()
    disk.open(f"{MIDDLE}.log").write(SIZE + 70, b"?")
    assert open_log(disk, CONFIG, recovery_point=25).next_offset == 30


def test_the_log_start_may_be_beyond_the_end() -> None:
    log = open_log(filled(), CONFIG, log_start_offset=100)
    assert (log.log_start_offset, log.next_offset, len(log.segments), log.size_bytes) == (100, 100, 1, 0)
    assert append(log).first_offset == 100


def test_the_log_start_within_a_segment() -> None:
    log = open_log(filled(), CONFIG, log_start_offset=14)
    assert log.log_start_offset == 14
    assert [record.offset for record in read_records(log)] == list(range(14, 30))


def test_old_formats_are_not_destroyed() -> None:
    """Messages of format v1 are refused, not taken for damage and cut off."""
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    body = b"\1\0" + bytes(8) + b"\xff\xff\xff\xff" + (100).to_bytes(4, "big") + b"v" * 100
    old = bytes(8) + (4 + len(body)).to_bytes(4, "big") + crc32(body).to_bytes(4, "big") + body
    disk.open(f"{DIRECTORY}/{0:020d}.log", create=True).append(old)
    with pytest.raises(StorageError, match="format v1"):
        open_log(disk)
    assert disk.content(f"{DIRECTORY}/{0:020d}.log") == old


def test_aborted_transactions_are_found_again() -> None:
    disk = SimDisk()
    log = open_log(disk, CONFIG)
    for i in range(6):
        append(log, batch(3, producer=7, sequence=3 * i, transactional=True))
        marker = end_txn_batch(EndTxnMarker(i % 2 == 0, 1), producer_id=7, producer_epoch=0, timestamp=NOW_MS)
        log.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    expected = aborted(log, 0, log.next_offset)
    assert expected == [(7, 4), (7, 12), (7, 20)]
    for path in [path for path in disk.paths() if path.endswith(("index", ".snapshot"))]:
        disk.remove(path)
    again = open_log(disk, CONFIG)
    assert aborted(again, 0, again.next_offset) == expected
    assert aborted(again, 13, 17) == [(7, 12)]


def test_an_empty_directory_and_a_new_one() -> None:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    for log in (open_log(disk), open_log(SimDisk())):
        assert (log.log_start_offset, log.next_offset, len(log.segments)) == (0, 0, 1)


def test_recovering_twice_changes_nothing() -> None:
    disk = filled()
    disk.open(f"{ACTIVE}.log").append(bytes(100))
    open_log(disk, CONFIG)
    content = {path: disk.content(path) for path in disk.paths()}
    log = open_log(disk, CONFIG)
    assert log.cut_bytes == 0
    assert {path: disk.content(path) for path in disk.paths()} == content


@pytest.mark.parametrize("kind", list(Crash))
@pytest.mark.parametrize("seed", range(25))
def test_crashes_within_recovery(seed: int, kind: Crash) -> None:
    """Recovery itself is interrupted, again and again; the log that was synced is there in the end."""
    rng = random.Random(seed)
    disk = filled()
    log = open_log(disk, CONFIG)
    log.flush()
    append(log, batch(3, producer=7, sequence=30, timestamp=NOW_MS + 10), epoch=1)
    disk = disk.crash(kind)
    for path in [path for path in disk.paths() if path.endswith("index") and rng.random() < 0.4]:
        disk.remove(path)
    for _ in range(6):
        disk.crash_within(rng.randint(1, 25), lambda: None)
        try:
            log = open_log(disk, CONFIG, recovery_point=30)
            break
        except BaseException as error:
            if type(error).__name__ != "HostCrashedError":
                raise
            disk = disk.crash(kind)
    log = open_log(disk.crash(kind), CONFIG, recovery_point=30)
    assert log.next_offset in (30, 33)
    assert [header.base_offset for header, _ in read_batches(log)][:10] == list(range(0, 30, 3))
    check_indexes(log)


def test_directories_of_deleted_partitions() -> None:
    kept = ["a-0", "a-0.0123abcd-future", "a-0.0123abcd-stray", "x-delete-0", "nothing-delete"]
    deleted = ["a-1.0123abcd-delete", "b.c-12.ffff-delete"]
    assert [name for name in kept + deleted if is_deleted_directory(name)] == deleted
