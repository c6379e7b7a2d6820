"""A leader's batches in a follower's log: as they are, in one write, all or none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.log.logs import NOW_MS, aborted, append, batch, check_indexes, open_log, read_batches

from ottla.log.config import LogConfig
from ottla.log.files.disk import StorageError
from ottla.log.log import Log, Origin
from ottla.model.errors import ApiError
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.sim.world.disk import SimDisk, SimFile


def whole(log: Log, offset: int = 0) -> bytes:
    return b"".join(data for _, data in read_batches(log, offset))


def leader(batches: int = 4, *, epochs: tuple[int, ...] = (0,)) -> Log:
    log = open_log()
    for epoch in epochs:
        for number in range(batches):
            append(log, batch(2, timestamp=NOW_MS + number), epoch=epoch)
    return log


def replicate(log: Log, data: bytes | memoryview, epoch: int = 9) -> int:
    return log.append_replicated(data, epoch, NOW_MS)


def same(one: Log, other: Log) -> None:
    assert whole(one, one.log_start_offset) == whole(other, other.log_start_offset)
    assert (one.next_offset, one.epochs.entries) == (other.next_offset, other.epochs.entries)
    assert [state.snapshot() for state in one.producer_states()] == [s.snapshot() for s in other.producer_states()]
    check_indexes(other)


def test_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    source, log = leader(20), open_log()
    data = whole(source)
    assert replicate(log, data[:1000]) > 0  # the end is often cut
    taken = log.active.file.size
    sizes: list[int] = []
    honest = SimFile.append
    monkeypatch.setattr(SimFile, "append", lambda file, data: (sizes.append(len(data)), honest(file, data))[1])
    assert replicate(log, data[taken:]) == len(data) - taken == sum(sizes)
    assert len(sizes) == 1
    same(source, log)


def test_epochs_and_segments() -> None:
    source, log = leader(epochs=(0, 2, 5)), open_log(config=LogConfig(segment_bytes=200))
    replicate(log, whole(source))
    assert len(log.segments) > 3
    same(source, log)


def test_what_is_here_already() -> None:
    source, log = leader(), open_log()
    data = whole(source)
    replicate(log, whole(source)[: len(data) // 2])
    assert replicate(log, data) == len(data) // 2
    assert replicate(log, data) == 0
    same(source, log)


def test_an_empty_log_that_begins_within_a_batch_of_its_leader() -> None:
    source, log = leader(), open_log()
    source.advance_log_start(3)
    log.truncate_fully_and_start_at(3)
    assert replicate(log, whole(source, 3)) == len(whole(source, 3))
    assert (log.log_start_offset, log.next_offset) == (2, 8), "the batch that holds it is given whole"
    log.advance_log_start(3)
    same(source, log)


def test_batches_of_a_leader_not_followed_yet() -> None:
    source, log = leader(epochs=(0, 4)), open_log()
    replicate(log, whole(source), epoch=3)
    assert log.next_offset == 8 and log.epochs.latest == 0


def test_gaps_of_a_compacted_log() -> None:
    source, log = leader(), open_log()
    batches = [data for _, data in read_batches(source)]
    replicate(log, batches[0] + batches[3])
    assert log.next_offset == 8
    other = open_log()
    with pytest.raises(ApiError, match="First offset 0 is less than the next offset 8"):
        replicate(other, batches[3] + batches[0])
    assert other.next_offset == 0


def test_transactions_and_producers() -> None:
    source, log = open_log(), open_log()
    append(source)
    for sequence in range(3):
        append(source, batch(producer=7, sequence=sequence, transactional=True))
        append(source, batch(producer=8, sequence=sequence))
    marker = end_txn_batch(EndTxnMarker(False, 3), producer_id=7, producer_epoch=0, timestamp=NOW_MS)
    source.append(marker, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    append(source, batch(producer=8, sequence=3))
    replicate(log, whole(source))
    same(source, log)
    assert aborted(log, 0, 99) == aborted(source, 0, 99) == [(7, 1)]
    assert log.producers.has_unreplicated


@pytest.mark.parametrize("damage", ["crc", "full disk"])
def test_all_or_none(damage: str) -> None:
    disk = SimDisk()
    source, log = leader(epochs=(0, 1)), open_log(disk)
    append(log, batch(2), epoch=0)
    data = bytearray(whole(source)[len(whole(log)) :])
    before = whole(log), log.epochs.entries
    if damage == "crc":
        data[-1] ^= 1
    else:
        disk.faults = replace(disk.faults, capacity_bytes=disk.used_bytes + 200)
    with pytest.raises((ApiError, StorageError)):
        replicate(log, bytes(data))
    disk.faults = replace(disk.faults, capacity_bytes=None)
    assert (whole(log), log.epochs.entries, log.next_offset) == (*before, 2)
    replicate(log, whole(source)[len(before[0]) :])
    assert log.next_offset == source.next_offset
