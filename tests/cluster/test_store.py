"""MetadataStore: the metadata journal on a disk that fails, tears and loses power."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cluster import journal
from ottla.cluster.election_file import read_election
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState, JournalError
from ottla.cluster.store import DIRECTORY, MetadataStore, StoreConfig
from ottla.log.files.disk import Directory, StorageError, read_all
from ottla.raft.config import RaftConfig
from ottla.raft.effects import Committed, Flush
from ottla.raft.events import Flushed, JournalGrew, Start
from ottla.raft.journal import OffsetAndEpoch, ReplicaKey
from ottla.raft.node import RaftNode
from ottla.raft.voters import Voter, VoterSet
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.records.control import ControlType
from ottla.sim.world.disk import Crash, DiskFaults, HostCrashedError, SimDisk
from ottla.wire import compile
from ottla.wire.journal import cluster_metadata as records
from ottla.wire.journal.control import KRaftVersionRecord, VotersRecord

CONFIG = StoreConfig(segment_bytes=8 << 20, segment_ms=1 << 40, bytes_between_snapshots=1 << 30)
DIRECTORY_ID = b"\x05" * 16


def topic(number: int) -> MetadataEntry:
    return MetadataEntry(records.TopicRecord(name=f"t{number}", topic_id=number.to_bytes(16, "big")))


class Run:
    """One life of a sole voter on a disk."""

    def __init__(self, disk: SimDisk, *, clean: bool = False, config: StoreConfig = CONFIG) -> None:
        self.state = ClusterState()
        self.store = MetadataStore.open(disk, config, now_ms=lambda: 2_000, clean=clean)
        self.store.load()
        self.applied = 0
        if self.store.latest_snapshot is not None:
            self.applied = self.store.latest_snapshot.offset
            self._apply(self.store.snapshot_items())
        alone = VoterSet([Voter(1)])
        self.raft = RaftNode(
            ReplicaKey(1, DIRECTORY_ID), "c", self.store, alone, config=RaftConfig(), rng=random.Random(1)
        )
        self._step(Start())

    def _step(self, event: Any) -> None:
        for effect in self.raft.step(event, 5):
            if isinstance(effect, Flush):
                self.store.flush()
                self._step(Flushed())
            elif isinstance(effect, Committed):
                while self.applied < effect.high_watermark:
                    items = list(self.store.read_items(self.applied, effect.high_watermark))
                    self.applied = items[-1].offset + 1
                    self._apply(items)

    def _apply(self, items: Iterable[journal.Item]) -> None:
        for item in items:
            if isinstance(item.content, MetadataEntry):
                self.state.apply(item.content.record)

    def add(self, *numbers: int) -> None:
        start = self.store.end_offset
        self.store.write_entries([topic(number) for number in numbers], self.raft.epoch)
        self.store.sync(start)
        self._step(JournalGrew())

    def snapshot(self) -> None:
        controls = [journal.Control(*each) for each in self.raft.history.controls_at(self.applied)]
        place = OffsetAndEpoch(self.applied, self.raft.epoch)
        self.store.write_snapshot(snapshot(self.state), place, last_timestamp=2_000, quorum=controls)

    @property
    def names(self) -> list[str]:
        return list(self.state.topics)


def test_what_was_appended_is_there_again() -> None:
    disk = SimDisk()
    first = Run(disk)
    first.add(1, 2)
    first.add(3)
    assert (first.raft.epoch, first.store.end_offset) == (1, 4)
    second = Run(disk)
    assert second.names == ["t1", "t2", "t3"]
    assert second.raft.epoch == 2


def test_every_start_begins_an_epoch_with_a_leader_change() -> None:
    disk = SimDisk()
    Run(disk).add(1)
    Run(disk).add(2)
    data = read_all(disk.open(f"{DIRECTORY}/{0:020d}.log"))
    found = [
        (item.epoch, item.content.type if isinstance(item.content, journal.Control) else "entry")
        for item in journal.items(memoryview(data))
    ]
    change = ControlType.LEADER_CHANGE
    assert found == [(1, change), (1, "entry"), (2, change), (2, "entry")]
    stored = json.loads(read_all(disk.open(f"{DIRECTORY}/quorum-state")))
    assert stored.pop("checksum")
    assert stored == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 2,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


def test_an_epoch_that_was_seen_but_never_written_is_not_used_again() -> None:
    disk = SimDisk()
    Run(disk).add(1)
    file = disk.open(f"{DIRECTORY}/quorum-state")
    stored = json.loads(read_all(file)) | {"leaderEpoch": 8}
    del stored["checksum"]  # as Kafka writes it
    file.truncate(0)
    file.append(json.dumps(stored).encode())
    assert Run(disk).raft.epoch == 9


def test_damage_is_noticed_after_a_clean_stop_too() -> None:
    """Nobody scans the log then, and every record of it counts."""
    disk = SimDisk()
    run = Run(disk)
    run.add(1, 2, 3)
    run.store.close()
    path = f"{DIRECTORY}/{0:020d}.log"
    sound = read_all(disk.open(path))
    for position in range(len(sound) - 20, len(sound)):
        flipped = bytearray(sound)
        flipped[position] ^= 1
        file = disk.open(path)
        file.truncate(0)
        file.append(flipped)
        with pytest.raises(JournalError, match="damaged"):
            MetadataStore.open(disk, CONFIG, now_ms=lambda: 0, clean=True).load()


def two_snapshots() -> SimDisk:
    """t2 and t3 lie between the snapshots; t4 behind the newer, in the same segment; t5 in the next."""
    disk = SimDisk()
    run = Run(disk)
    run.add(1)
    run.snapshot()
    run.add(2)
    run.add(3)
    writing = run.store.writing_snapshot(list(snapshot(run.state)), OffsetAndEpoch(4, 1), last_timestamp=0, quorum=[])
    next(writing)
    run.add(4)
    for sync in writing:
        if sync is not None:
            sync()
    run.add(5)
    run.store.close()
    return disk


def batches(store: MetadataStore) -> dict[int, bytes]:
    """All that the log gives away, by where it begins."""
    found = {}
    offset = store.start_offset
    while offset < store.end_offset:
        data = store.read(offset, 1)  # of which the first batch is whole
        found[offset] = data[: read_header(data).size_bytes]
        offset = read_header(data).next_offset
    assert offset == store.end_offset
    return found


@pytest.mark.parametrize("clean", [True, False])
def test_no_bit_of_the_log_can_change_unseen(clean: bool) -> None:
    """Wherever it lies: below a snapshot, too, is what followers are given."""
    disk = two_snapshots()
    whole = MetadataStore.open(disk, CONFIG, now_ms=lambda: 0, clean=True)
    whole.load()
    sound = batches(whole)
    whole.close()
    assert list(sound) == [2, 3, 4, 5]
    outcomes = set()
    for path in [path for path in disk.paths() if path.endswith(".log")]:
        content = disk.content(path)
        begins = [content.find(batch) for batch in sound.values() if batch in content]
        epochs = {begin + byte for begin in begins for byte in range(12, 16)}
        for byte in range(len(content)):
            if byte in epochs:
                continue  # which no checksum covers
            struck = two_snapshots()
            flipped = bytearray(content)
            flipped[byte] ^= 1
            file = struck.open(path)
            file.truncate(0)
            file.append(flipped)
            try:
                store = MetadataStore.open(struck, CONFIG, now_ms=lambda: 0, clean=clean)
                store.load()
            except JournalError:
                outcomes.add("refused")
                continue
            found = batches(store)
            assert found.items() <= sound.items() and found != sound
            assert store.latest_snapshot is not None and store.start_offset <= store.latest_snapshot.offset
            if clean:
                assert store.end_offset == whole.end_offset
            outcomes.add("dropped" if store.end_offset == whole.end_offset else "cut")
    assert outcomes == ({"refused", "dropped"} if clean else {"cut", "dropped"})


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("offset", [2, 3])
@pytest.mark.parametrize("byte", [0, 7, 8, 11, 16, 26, HEADER_BYTES])  # where it begins, its length, magic, delta; data
def test_damage_below_the_newest_snapshot_costs_nothing_that_counts(clean: bool, offset: int, byte: int) -> None:
    """Not even if no batch can be recognised there: what lies behind was synced, and a sole voter has nobody to ask."""
    disk = two_snapshots()
    path = f"{DIRECTORY}/{2:020d}.log"
    position = 0 if offset == 2 else read_header(disk.content(path)).size_bytes
    strike(disk, path, position + byte)
    for number in range(2):
        run = Run(disk, clean=clean)
        assert run.names == ["t1", "t2", "t3", "t4", "t5"]
        assert run.store.start_offset == 4 and run.store.earliest_snapshot == OffsetAndEpoch(4, 1)
        assert bool(run.store.losses) == (number == 0), "it is gone, and that is told once"
        run.store.close()


@pytest.mark.parametrize("kind", list(Crash))
@pytest.mark.parametrize("clean", [True, False])
def test_crashes_while_the_log_is_parted_from_its_damage(clean: bool, kind: Crash) -> None:
    crashed = 0
    for operations in range(1, 60):
        disk = two_snapshots()
        strike(disk, f"{DIRECTORY}/{2:020d}.log", 16)
        disk.crash_within(operations, lambda: None)
        try:
            Run(disk, clean=clean)
        except HostCrashedError:
            crashed += 1
        run = Run(disk.crash(kind))
        assert run.names == ["t1", "t2", "t3", "t4", "t5"] and run.store.start_offset == 4
    assert 10 < crashed < 59


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("byte", [8, 16])
def test_damage_that_may_hide_what_lies_behind_the_snapshot_is_refused(clean: bool, byte: int) -> None:
    """Two batches of one file, one on each side of the snapshot: where it would go on, nobody can tell any more."""
    disk = two_snapshots()
    path = f"{DIRECTORY}/{2:020d}.log"
    second = read_header(disk.content(path)).size_bytes
    third = second + read_header(disk.content(path), second).size_bytes
    strike(disk, path, second + byte)
    strike(disk, path, third + HEADER_BYTES)
    content = disk.content(path)
    for _ in range(2):
        with pytest.raises(JournalError, match="damaged at offset 3"):
            Run(disk, clean=clean)
    assert disk.content(path) == content


def strike(disk: SimDisk, path: str, byte: int) -> None:
    file = disk.open(path)
    file.write(byte, bytes([read_all(file)[byte] ^ 1]))
    file.sync()


def test_no_bit_of_what_is_remembered_of_elections_can_change_unseen() -> None:
    disk = SimDisk()
    Run(disk).add(1)
    directory = Directory(disk, DIRECTORY)
    file = disk.open(f"{DIRECTORY}/quorum-state")
    sound, remembered = read_all(file), read_election(directory)
    refused = 0
    for bit in range(8 * len(sound)):
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        file.truncate(0)
        file.append(flipped)
        try:
            assert read_election(directory) == remembered
        except JournalError:
            refused += 1
    assert refused > 7 * len(sound)  # all but the name of the checksum itself


def test_ten_thousand_partitions_cost_one_write_and_one_sync() -> None:
    disk = SimDisk()
    run = Run(disk)
    run.add(0)
    before = disk.syncs
    operations: list[str] = []
    disk.on_operation = lambda operation, path, size_bytes: operations.append(operation)
    run.add(*range(1, 10_002))  # as many records as a topic of 10,000 partitions has
    assert operations == ["write", "sync"] and disk.syncs == before + 1
    assert len(Run(disk).names) == 10_002


def test_a_group_too_large_for_one_batch_is_a_transaction() -> None:
    entries = [topic(number) for number in range(45_000)]
    batches = journal.atomic(entries, base_offset=7, epoch=1, now_ms=5)
    assert len(batches) == 3
    items = list(journal.items(memoryview(b"".join(batches))))
    assert [item.offset for item in items] == list(range(7, 7 + 45_002))
    assert isinstance(items[0].content, MetadataEntry) and isinstance(items[-1].content, MetadataEntry)
    assert isinstance(items[0].content.record, records.BeginTransactionRecord)
    assert isinstance(items[-1].content.record, records.EndTransactionRecord)
    assert len(journal.atomic(entries[:10_001], base_offset=7, epoch=1, now_ms=5)) == 1


def test_a_start_reads_the_newest_snapshot_and_what_follows() -> None:
    disk = SimDisk()
    run = Run(disk)
    run.add(1, 2)
    run.snapshot()
    run.add(3)
    name = f"{3:020d}-{1:010d}.checkpoint"
    assert name in disk.list(DIRECTORY)
    assert Run(disk).names == ["t1", "t2", "t3"]


def test_old_snapshots_and_segments_go() -> None:
    disk = SimDisk()
    run = Run(disk)
    for number in range(6):
        run.add(number)
        run.snapshot()
    names = disk.list(DIRECTORY)
    assert sum(name.endswith(".checkpoint") for name in names) == 2
    assert f"{0:020d}.log" not in names
    again = Run(disk)
    assert again.names == [f"t{number}" for number in range(6)]
    again.add(6)
    assert len(Run(disk).names) == 7


def test_what_a_crash_left_of_a_snapshot_goes_with_the_next_start() -> None:
    disk = SimDisk()
    run = Run(disk)
    run.add(1)
    next(run.store.writing_snapshot(snapshot(run.state), OffsetAndEpoch(2, 1), last_timestamp=0, quorum=[]))
    disk = disk.crash(Crash.PROCESS)
    assert any(name.endswith(".part") for name in disk.list(DIRECTORY))
    assert Run(disk).names == ["t1"]
    assert not any(name.endswith(".part") for name in disk.list(DIRECTORY))


def test_a_snapshot_is_due_after_so_many_bytes() -> None:
    disk = SimDisk()
    run = Run(disk, config=StoreConfig(8 << 20, 1 << 40, bytes_between_snapshots=5_000))
    number = 0
    while not run.store.snapshot_due:
        run.add(number)
        number += 1
    assert 20 < number < 60
    run.snapshot()
    assert not run.store.snapshot_due


def test_a_damaged_snapshot_is_passed_over() -> None:
    disk = SimDisk()
    run = Run(disk)
    run.add(1)
    run.snapshot()
    run.add(2)
    run.snapshot()
    newest = sorted(name for name in disk.list(DIRECTORY) if name.endswith(".checkpoint"))[-1]
    file = disk.open(f"{DIRECTORY}/{newest}")
    file.truncate(file.size - 10)  # without its footer
    assert Run(disk).names == ["t1", "t2"]


def test_without_any_snapshot_a_log_that_does_not_begin_at_the_start_is_refused() -> None:
    disk = SimDisk()
    run = Run(disk)
    for number in range(3):
        run.add(number)
        run.snapshot()
    for name in disk.list(DIRECTORY):
        if name.endswith(".checkpoint"):
            disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(JournalError, match="no snapshot holds what was before"):
        Run(disk)


def test_a_log_behind_its_snapshot_goes_on_behind_it() -> None:
    disk = SimDisk()
    run = Run(disk)
    run.add(1, 2, 3)
    run.snapshot()
    for name in disk.list(DIRECTORY):
        if name.endswith(".log"):
            disk.open(f"{DIRECTORY}/{name}").truncate(0)
    again = Run(disk)
    assert again.names == ["t1", "t2", "t3"]
    again.add(4)
    assert Run(disk).names == ["t1", "t2", "t3", "t4"]


def test_a_full_disk_leaves_everything_as_it_was() -> None:
    disk = SimDisk(faults=DiskFaults())
    run = Run(disk)
    run.add(1)
    disk.faults.capacity_bytes = 0
    with pytest.raises(StorageError):
        run.add(2)
    disk.faults.capacity_bytes = None
    run.add(3)
    assert Run(disk).names == ["t1", "t3"]


def test_a_failed_sync_takes_back_what_it_was_for() -> None:
    disk = SimDisk(faults=DiskFaults())
    run = Run(disk)
    run.add(1)
    disk.faults.sync_error_rate = 1.0
    with pytest.raises(StorageError):
        run.add(2)
    disk.faults.sync_error_rate = 0.0
    run.add(3)
    assert Run(disk).names == ["t1", "t3"]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), groups=st.lists(st.integers(1, 4), min_size=1, max_size=6), snap=st.booleans())
def test_what_was_acknowledged_survives_power_loss(seed: int, groups: list[int], snap: bool) -> None:
    disk = SimDisk(random.Random(seed), DiskFaults(garbage_rate=0.2))
    number = 0
    for size in groups:
        run = Run(disk)
        assert run.names == [f"t{each}" for each in range(number)]
        run.add(*range(number, number + size))
        number += size
        if snap:
            run.snapshot()
        disk = disk.crash(Crash.POWER)
    assert Run(disk).names == [f"t{each}" for each in range(number)]


def voters(*ids: int) -> list[journal.Control]:
    voter = VotersRecord.Voter
    record = VotersRecord(
        version=0,
        voters=[
            voter(
                voter_id=id,
                voter_directory_id=DIRECTORY_ID,
                endpoints=[],
                kraft_version_feature=voter.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
            for id in ids
        ],
    )
    kraft = KRaftVersionRecord(version=0, kraft_version=1)
    return [
        journal.Control(ControlType.KRAFT_VERSION, compile.encode(kraft, 0)),
        journal.Control(ControlType.KRAFT_VOTERS, compile.encode(record, 0)),
    ]


def formatted_with(controls: list[journal.Control]) -> SimDisk:
    """What `kafka-storage format --standalone` leaves: the voters in the snapshot before the first record."""
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    pieces: Any = journal.snapshot_batches([], epoch=0, last_timestamp=0, now_ms=1, quorum=controls)
    disk.open(f"{DIRECTORY}/{0:020d}-{0:010d}.checkpoint", create=True).append(b"".join(pieces))
    return disk


def test_voters_in_the_journal_are_kept_and_obeyed() -> None:
    disk = formatted_with(voters(1))
    run = Run(disk)
    assert run.raft.history.kraft_version == 1 and run.raft.is_leader
    run.add(1)
    run.snapshot()
    again = Run(disk)
    assert again.raft.history.kraft_version == 1
    assert again.raft.voters[1].directory == DIRECTORY_ID
    assert json.loads(read_all(disk.open(f"{DIRECTORY}/quorum-state")))["data_version"] == 1
    assert not Run(formatted_with(voters(1, 2, 3))).raft.is_leader
