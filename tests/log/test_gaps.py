"""Offsets that are missing: no damage behind a sound CRC, whatever the topic's policy is by now, unless it is known
that they were there."""

import random

import pytest
from tests.log.compacting import CONFIG as COMPACTED
from tests.log.compacting import NAME, Model
from tests.log.logs import DIRECTORY, NOW_MS, append, batch, check_indexes, open_log, read_records

from ottla.log.config import LogConfig
from ottla.log.files.disk import Directory
from ottla.log.log import Log
from ottla.log.offline.verify import verify
from ottla.log.recovery.seams import Seams
from ottla.records.batch import headers, stamp
from ottla.sim.world.disk import Crash, SimDisk

DELETED = COMPACTED._replace(compact=False, delete=True)


def compacted() -> Model:
    """30 records of three keys, thinned out; then records that nobody compacts, and the policy changes."""
    model = Model()
    for number in range(30):
        model.append([(b"k%d" % (number % 3), b"v%d" % number)])
    model.roll()
    model.compact()
    model.append([(b"k0", b"again")])
    model.roll()
    model.compact()
    model.config = DELETED
    model.log.configure(DELETED)
    for number in range(40):
        model.append([(b"d%d" % number, b"w%d" % number)])
    return model


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_records(log)]


def test_a_policy_that_changed_costs_nothing_at_a_kill() -> None:
    model = compacted()
    before = offsets(model.log)
    assert before[:4] == [28, 29, 30, 31] and model.log.next_offset == 71
    for _ in range(2):
        model.reopen(model.disk.crash(Crash.PROCESS))
        assert (offsets(model.log), model.log.next_offset, model.log.cut_bytes) == (before, 71, 0)
        check_indexes(model.log)
    assert not [finding for finding in verify(model.disk, partitions=[NAME]) if finding.severity.name == "ERROR"]


@pytest.mark.parametrize("seed", range(20))
def test_nor_does_it_cost_what_was_synced_when_the_power_fails(seed: int) -> None:
    """The recovery point is unknown: what the checkpoint says may be much older."""
    model = compacted()
    model.log.flush()
    before = offsets(model.log)
    model.append([(b"late", b"x")])
    model.disk.rng = random.Random(seed)
    model.reopen(model.disk.crash(Crash.POWER))
    assert offsets(model.log)[: len(before)] == before


def copied(source: Log, target: Log) -> None:
    """As a follower copies: batches as they are."""
    while target.next_offset < source.next_offset:
        found = source.read(target.next_offset, 700, max_offset=source.next_offset)
        assert found.slice is not None
        target.append_replicated(found.slice.read(), 0, NOW_MS)


def test_a_follower_keeps_the_gaps_it_copied() -> None:
    source = compacted().log
    disk = SimDisk()
    follower = open_log(disk, DELETED)
    copied(source, follower)
    assert len(follower.segments) > 3
    again = open_log(disk.crash(Crash.PROCESS), DELETED)
    assert offsets(again) == offsets(source)
    assert (again.next_offset, again.cut_bytes) == (71, 0)


def test_a_gap_that_no_relative_offset_spans_has_no_seam() -> None:
    """The follower's next segment begins behind the gap."""
    disk = SimDisk()
    log = open_log(disk)
    log.append_replicated(batch(3), 0, NOW_MS)
    far = batch(3)
    stamp(far, 0, 1 << 33, 0)
    log.append_replicated(far, 0, NOW_MS)
    assert log.bases == [0, 1 << 33] and log.durable.seams.offsets == []
    again = open_log(disk.crash(Crash.PROCESS))
    assert offsets(again) == [0, 1, 2, *range(1 << 33, (1 << 33) + 3)]


# --- what is known to have been there

SIZE = len(batch(1))
SMALL = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=SIZE)


def rolled(disk: SimDisk, count: int = 10) -> Log:
    log = open_log(disk, SMALL)
    for _ in range(count):
        append(log)
    return log


def seams(disk: SimDisk) -> list[str]:
    return [name for name in disk.list(DIRECTORY) if name.endswith(".seam")]


@pytest.mark.parametrize("kept", [1, 2, 3])
@pytest.mark.parametrize("config", [SMALL, SMALL._replace(compact=True)], ids=["delete", "compact"])
def test_a_lost_end_is_no_gap(kept: int, config: LogConfig) -> None:
    """Between two batches, so that nothing looks torn."""
    disk = SimDisk()
    rolled(disk)
    disk.open(f"{DIRECTORY}/{4:020d}.log").truncate(kept * SIZE)
    log = open_log(disk, config)
    assert (offsets(log), log.next_offset) == (list(range(4 + kept)), 4 + kept)
    assert seams(disk) == [f"{4:020d}.seam"]
    append(log)
    assert log.bases == [0, 4]


def test_seams_go_when_the_segment_is_on_disk() -> None:
    disk = SimDisk()
    log = rolled(disk)
    assert seams(disk) == [f"{4:020d}.seam", f"{8:020d}.seam"]
    log.files_to_sync()
    for _ in range(4):
        append(log)
    log.mark_synced()
    assert seams(disk) == [f"{12:020d}.seam"]
    log.flush()
    assert seams(disk) == []
    for _ in range(4):
        append(log)
    log.close()
    assert seams(disk) == []


def test_a_cut_takes_the_seams_with_it() -> None:
    disk = SimDisk()
    log = rolled(disk)
    log.truncate_to(6, now_ms=NOW_MS)
    assert seams(disk) == [f"{4:020d}.seam"]
    log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
    assert seams(disk) == []


def test_retention_takes_the_seams_with_it() -> None:
    """Nothing is ever synced: a seam has a segment on either side, or is gone."""
    disk = SimDisk()
    log = open_log(disk, SMALL._replace(retention_bytes=8 * SIZE))
    for _ in range(40):
        append(log)
        log.delete_old_segments(NOW_MS, log.next_offset)
        assert log.durable.seams.offsets == log.bases[1:]
    log.remove_deleted(NOW_MS + log.config.file_delete_delay_ms)
    assert seams(disk) == [f"{base:020d}.seam" for base in log.bases[1:]]
    assert len(log.segments) > 1


def test_seams_are_in_order_however_they_came() -> None:
    """A roll that fails leaves its seam; after a cut the next one may lie before it."""
    found = Seams(Directory(SimDisk(), ""))
    for offset in (8, 4, 12, 4):
        found.make(offset)
    assert found.offsets == [4, 8, 12] and 8 in found and 9 not in found
    found.remove_range(4, 12)
    assert found.offsets == [12]


@pytest.mark.parametrize("kind", list(Crash))
def test_compaction_of_what_was_never_synced(kind: Crash) -> None:
    """A crash anywhere: the gaps that it leaves are never taken for a lost end."""
    for step in range(1, 60):
        model = Model(disk=SimDisk(random.Random(step)))
        for number in range(12):
            model.append([(b"k%d" % (number % 2), b"v%d" % number)])
        model.append([(b"last", b"x")])
        model.roll()
        assert model.log.durable.seams.offsets
        if kind is Crash.POWER:
            for segment in model.log.segments:
                for file in segment.files():
                    file.sync()
            model.log.directory.sync()
            model.disk.sync_directory("")
        model.append([(b"k0", b"end"), (b"k1", b"end")])
        model.log.active.file.sync()
        model.disk.crash_within(step, lambda: None)
        try:
            model.compact()
        except BaseException as error:
            if type(error).__name__ != "HostCrashedError":
                raise
        model.disk.crash_never()
        model.config = DELETED
        model.reopen(model.disk.crash(kind))
        assert model.log.next_offset == 15, step
        left = {record.key: record.value for record in read_records(model.log)}
        assert left == {b"k0": b"end", b"k1": b"end", b"last": b"x"}, step


# --- a base offset that changed


@pytest.mark.parametrize("shift", [1 << 4, 1 << 20])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_base_offset_that_flipped_is_damage(at: int, shift: int) -> None:
    """The CRC does not cover it. What lies behind shows that the batch cannot have been there."""
    disk = SimDisk()
    rolled(disk)
    file = disk.open(f"{DIRECTORY}/{4:020d}.log")
    _, header = list(headers(file.read(0, file.size)))[at]
    file.write(at * SIZE, (header.base_offset + shift).to_bytes(8, "big"))
    log = open_log(disk, SMALL)
    assert (offsets(log), log.next_offset) == (list(range(4 + at)), 4 + at)


def test_a_torn_batch_behind_a_gap_is_no_witness() -> None:
    disk = SimDisk()
    log = open_log(disk)
    log.append_replicated(batch(1), 0, NOW_MS)
    far = batch(1)
    stamp(far, 0, 50, 0)
    log.append_replicated(far, 0, NOW_MS)
    torn = batch(1)
    torn[-1] ^= 1
    log.active.file.append(torn)
    assert offsets(open_log(disk)) == [0, 50]
