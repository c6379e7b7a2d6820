"""`log dump` and `log verify`: clean directories pass, and every kind of damage is found and named."""

import random
import struct

import pytest
from tests.log.compacting import NAME, Model, small
from tests.log.logs import aborted

from ottla.log.files.checkpoint import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    CheckpointError,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
    write_partition_metadata,
)
from ottla.log.files.disk import Directory
from ottla.log.offline import dump
from ottla.log.offline.findings import Finding, FindingKind, Severity, VerifyTotals
from ottla.log.offline.verify import verify
from ottla.model.ids import TopicPartition
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record
from ottla.sim.world.disk import SimDisk

FIRST = f"{NAME}/00000000000000000000"


@pytest.fixture
def model() -> Model:
    """Three closed segments and an active one, of all kinds of batches, closed in order."""
    model = Model(config=small(segment_bytes=3_000, index_interval_bytes=200))
    for number in range(60):
        model.append([(b"k%d" % number, b"v" * 30), (b"x", None)], codec=Codec(number % 5), producer_id=9)
        model.append([(b"t", b"v")], producer_id=1, transactional=True)
        if number % 3 == 0:
            model.end(1, commit=number % 2 == 0)
    model.end(1, commit=False)
    partition = TopicPartition("topic", 0)
    for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        write_offsets(model.disk, name, {partition: 0})
    write_meta_properties(model.disk, {"version": "1", "cluster.id": "abc"})
    write_partition_metadata(Directory(model.disk, NAME), bytes(range(16)))
    model.log.close()
    write_clean_shutdown(model.disk)
    assert len(model.log.segments) > 3
    return model


def findings(disk: SimDisk, at_least: Severity = Severity.NOTE) -> list[Finding]:
    return [finding for finding in verify(disk) if finding.severity >= at_least]


def only(disk: SimDisk) -> Finding:
    (found,) = findings(disk)
    assert str(found).startswith(f"{found.severity.name.lower()}: {found.kind}: {found.path}")
    return found


def change(disk: SimDisk, path: str, at: int, data: bytes) -> None:
    file = disk.open(path)
    file.write(at if at >= 0 else file.size + at, data)


def test_a_sound_directory_passes(model: Model) -> None:
    totals = VerifyTotals()
    assert list(verify(model.disk, totals=totals)) == []
    assert totals.partitions == 1
    assert totals.segments == len(model.log.segments)
    assert totals.size_bytes == model.log.size_bytes
    assert totals.records == len(model.records()) + 21, "markers are records too"
    assert list(verify(model.disk, deep=False)) == []
    assert list(verify(model.disk, partitions=[NAME])) == []


def test_a_compacted_directory_passes(model: Model) -> None:
    model.reopen(model.disk, clean=True)
    model.roll()
    model.compact()
    model.log.close()
    write_clean_shutdown(model.disk)
    assert findings(model.disk) == []


def test_every_flipped_bit_of_a_segment_is_found(model: Model) -> None:
    rng = random.Random(4)
    path = FIRST + ".log"
    original = model.disk.content(path)
    for _ in range(60):
        at = rng.randrange(len(original))
        change(model.disk, path, at, bytes([original[at] ^ (1 << rng.randrange(8))]))
        # Base offset and leader epoch of a batch lie outside its CRC: a change there shows as a wrong order, if at all.
        header_at = max(b.position for b in dump.batches(Directory(model.disk, NAME), 0) if b.position <= at)
        if findings(model.disk) == []:
            assert at - header_at < 17
        change(model.disk, path, at, original[at : at + 1])
    assert findings(model.disk) == []


@pytest.mark.parametrize(("size_bytes", "severity"), [(30, Severity.ERROR), (100, Severity.ERROR)])
def test_a_torn_tail(model: Model, size_bytes: int, severity: Severity) -> None:
    last = model.log.segments[-1].file.path
    size = model.disk.open(last).size
    model.disk.open(last).append(bytes(size_bytes))
    found = only(model.disk)
    assert (found.severity, found.kind, found.position) == (severity, FindingKind.GARBAGE, size)
    model.disk.remove(".kafka_cleanshutdown")
    assert only(model.disk).severity is Severity.WARNING, "recovery cuts it off"


def test_garbage_within_the_log(model: Model) -> None:
    model.disk.open(FIRST + ".log").truncate(1_000)
    kinds = {(found.severity, found.kind) for found in findings(model.disk)}
    assert (Severity.ERROR, FindingKind.GARBAGE) in kinds
    assert (Severity.ERROR, FindingKind.INDEX_POSITION) in kinds


def test_offsets_out_of_order(model: Model) -> None:
    change(model.disk, FIRST + ".log", 0, struct.pack(">q", 2))
    assert FindingKind.OFFSET_ORDER in {found.kind for found in findings(model.disk)}
    last = model.log.segments[1]
    change(model.disk, FIRST + ".log", 0, struct.pack(">q", 0))
    change(model.disk, last.file.path, 0, struct.pack(">q", last.base_offset - 1))
    assert only(model.disk).kind is FindingKind.OFFSET_ORDER


def test_epochs_out_of_order(model: Model) -> None:
    change(model.disk, FIRST + ".log", 12, struct.pack(">i", 5))
    kinds = [found.kind for found in findings(model.disk)]
    assert kinds == [FindingKind.EPOCH_ORDER, FindingKind.CHECKPOINT]


def test_records_that_lie() -> None:
    disk = SimDisk()
    disk.make_directory("t-0")
    rows = [Record(0, 50, b"k", b"v"), Record(1, 60, b"k", b"v")]
    lying = [
        build_batch([rows[0], rows[0]], base_offset=0, last_offset_delta=1),
        build_batch([r._replace(offset=r.offset + 2) for r in rows], base_offset=2, max_timestamp=55),
        build_batch([r._replace(offset=r.offset + 4) for r in rows], base_offset=4, last_offset_delta=0),
    ]
    disk.open("t-0/00000000000000000000.log", create=True).append(b"".join(lying))
    found = [f for f in findings(disk) if f.kind not in (FindingKind.MISSING, FindingKind.CHECKPOINT)]
    assert [f.kind for f in found] == [FindingKind.DAMAGED_RECORD, FindingKind.TIMESTAMP, FindingKind.DAMAGED_RECORD]
    assert {f.kind for f in verify(disk, deep=False, partitions=["t-0"])} == {FindingKind.MISSING}


def test_offset_index_damage(model: Model) -> None:
    path = FIRST + ".index"
    original = model.disk.content(path)
    first, second = struct.unpack(">IIII", original[:16])[:2], struct.unpack(">IIII", original[:16])[2:]
    cases = [
        (struct.pack(">II", first[0], first[1] + 1), FindingKind.INDEX_POSITION, Severity.ERROR),
        (struct.pack(">II", 0, first[1]), FindingKind.INDEX_OFFSET, Severity.ERROR),
        (struct.pack(">II", first[0] + 1, first[1]), FindingKind.INDEX_OFFSET, Severity.WARNING),
        (struct.pack(">II", second[0] + 1, first[1]), FindingKind.INDEX_ORDER, Severity.ERROR),
    ]
    for data, kind, severity in cases:
        change(model.disk, path, 0, data)
        assert (kind, severity) in [(found.kind, found.severity) for found in findings(model.disk)]
        change(model.disk, path, 0, original[:8])
    model.disk.open(path).append(b"abc")
    assert only(model.disk).kind is FindingKind.INDEX_SIZE
    model.disk.open(path).append(struct.pack(">II", 9_999, 999_999) + bytes(5))
    assert {FindingKind.INDEX_POSITION} <= {found.kind for found in findings(model.disk)}
    model.disk.remove(path)
    assert only(model.disk).kind is FindingKind.MISSING


def test_zeros_at_the_end_of_an_index_are_padding(model: Model) -> None:
    model.disk.open(FIRST + ".index").append(bytes(8 * 40_000))
    model.disk.open(FIRST + ".timeindex").append(bytes(12 * 40_000))
    assert findings(model.disk) == []
    model.disk.open(FIRST + ".index").append(struct.pack(">II", 1, 1))
    assert FindingKind.INDEX_ORDER in {found.kind for found in findings(model.disk)}


def test_time_index_damage(model: Model) -> None:
    path = FIRST + ".timeindex"
    original = model.disk.content(path)
    timestamp, offset = struct.unpack(">qI", original[:12])
    cases = [
        (struct.pack(">qI", timestamp - 50, offset), FindingKind.TIME_INDEX, Severity.ERROR),
        (struct.pack(">qI", timestamp + 5, offset), FindingKind.TIME_INDEX, Severity.WARNING),
        (struct.pack(">qI", timestamp + 10**6, offset), FindingKind.INDEX_ORDER, Severity.ERROR),
    ]
    for data, kind, severity in cases:
        change(model.disk, path, 0, data)
        assert (kind, severity) in [(found.kind, found.severity) for found in findings(model.disk)]
        change(model.disk, path, 0, original[:12])
    model.disk.open(path).truncate(12)
    assert only(model.disk)[:2] == (Severity.WARNING, FindingKind.TIME_INDEX)
    model.disk.open(path).append(struct.pack(">qI", timestamp + 1, 2_000_000))
    assert only(model.disk)[:2] == (Severity.ERROR, FindingKind.TIME_INDEX)


def test_txn_index_damage(model: Model) -> None:
    path = next(path for path in model.disk.paths() if path.endswith(".txnindex"))
    original = model.disk.content(path)
    for at, value in ((2, 12345), (10, 10**9), (18, 10**9)):
        change(model.disk, path, at, struct.pack(">q", value))
        assert {found.kind for found in findings(model.disk)} == {FindingKind.TXN_INDEX}
        change(model.disk, path, at, original[at : at + 8])
    model.disk.open(path).append(b"x")
    assert only(model.disk).kind is FindingKind.INDEX_SIZE


def test_snapshot_damage(model: Model) -> None:
    path = next(path for path in model.disk.paths() if path.endswith(".snapshot"))
    change(model.disk, path, 20, b"\xff")
    assert only(model.disk)[:2] == (Severity.WARNING, FindingKind.SNAPSHOT)
    end = model.log.next_offset
    model.disk.rename(f"{NAME}/{end:020d}.snapshot", f"{NAME}/{end + 7:020d}.snapshot")
    model.disk.remove(path)
    assert only(model.disk)[:2] == (Severity.ERROR, FindingKind.SNAPSHOT), "the log was closed there, and ends before"
    model.disk.rename(f"{NAME}/{end + 7:020d}.snapshot", f"{NAME}/{3:020d}.snapshot")
    assert {found[:2] for found in findings(model.disk)} == {(Severity.ERROR, FindingKind.SNAPSHOT)}


def test_epoch_checkpoint_damage(model: Model) -> None:
    path = f"{NAME}/{LEADER_EPOCHS}"
    for text, severities in (
        ("0\n1\n0 5\n", [Severity.WARNING]),  # as after a log start that was not written down yet
        ("0\n1\n7 0\n", [Severity.ERROR]),
        ("0\n2\n0 0\n1 99999\n", [Severity.WARNING]),
        ("0\n2\n3 0\n0 0\n", [Severity.ERROR]),
        ("0\n2\n0 0\n", [Severity.WARNING]),
        ("0\n1\n0 zero\n", [Severity.WARNING]),
        ("7\n", [Severity.WARNING]),
    ):
        file = model.disk.open(path)
        file.truncate(0)
        file.append(text.encode())
        assert [found.severity for found in findings(model.disk)] == severities, text


def test_small_files_of_the_directory(model: Model) -> None:
    gone, here = TopicPartition("gone", 1), TopicPartition("topic", 0)
    write_offsets(model.disk, HIGH_WATERMARKS, {gone: 5})
    assert only(model.disk)[:3] == (Severity.NOTE, FindingKind.CHECKPOINT, HIGH_WATERMARKS)
    write_offsets(model.disk, HIGH_WATERMARKS, {here: 10**6})
    assert only(model.disk)[:3] == (Severity.WARNING, FindingKind.CHECKPOINT, HIGH_WATERMARKS)
    write_offsets(model.disk, HIGH_WATERMARKS, {})
    write_offsets(model.disk, LOG_STARTS, {here: 10**6})
    assert only(model.disk)[:3] == (Severity.ERROR, FindingKind.CHECKPOINT, LOG_STARTS)
    change(model.disk, LOG_STARTS, 0, b"9")
    assert only(model.disk)[:3] == (Severity.WARNING, FindingKind.CHECKPOINT, LOG_STARTS)
    model.disk.remove(LOG_STARTS)
    write_meta_properties(model.disk, {"node.id": "1"})
    assert only(model.disk)[:2] == (Severity.ERROR, FindingKind.CHECKPOINT)
    model.disk.remove("meta.properties")
    assert only(model.disk)[:2] == (Severity.NOTE, FindingKind.MISSING)


def test_files_in_a_partition(model: Model) -> None:
    for name, kind in (
        ("00000000000000000000.log.deleted", FindingKind.LEFTOVER),
        ("00000000000000000000.log.swap", FindingKind.LEFTOVER),
        ("notes.txt", FindingKind.UNKNOWN_FILE),
        ("00000000000000000001.index", FindingKind.MISSING),
        ("00000000000000000000-0000000001.checkpoint", FindingKind.GARBAGE),
    ):
        model.disk.open(f"{NAME}/{name}", create=True).append(b"?")
        assert only(model.disk).kind is kind
        model.disk.remove(f"{NAME}/{name}")
    snapshot = model.disk.open(f"{NAME}/00000000000000000009-0000000001.checkpoint", create=True)
    snapshot.append(build_batch([(None, b"v")]))
    assert findings(model.disk) == []
    snapshot.write(65, b"?")
    assert only(model.disk).kind is FindingKind.DAMAGED_BATCH
    model.disk.remove(snapshot.path)
    change(model.disk, f"{NAME}/{PARTITION_METADATA}", 0, b"Version")
    assert only(model.disk).kind is FindingKind.CHECKPOINT
    model.disk.remove(f"{NAME}/{PARTITION_METADATA}")
    assert only(model.disk)[:2] == (Severity.NOTE, FindingKind.MISSING)


def test_a_disk_that_cannot_be_read_does_not_end_it(model: Model) -> None:
    model.disk.faults.read_error_rate = 1.0
    with pytest.raises(Exception, match="cannot read"):
        list(verify(model.disk))
    found = list(verify(model.disk, partitions=[NAME]))
    assert [(f.severity, f.kind) for f in found] == [(Severity.ERROR, FindingKind.UNREADABLE)]


def test_dump_shows_all_there_is(model: Model) -> None:
    directory = Directory(model.disk, NAME)
    assert dump.partition_directories(model.disk) == [NAME]
    files = dump.partition_files(directory)
    assert files.segments == [segment.base_offset for segment in model.log.segments]
    assert files.others == [LEADER_EPOCHS, PARTITION_METADATA]
    shown = [batch for base in files.segments for batch in dump.batches(directory, base)]
    assert all(isinstance(batch, dump.DumpedBatch) and batch.problem is None for batch in shown)
    assert [r for b in shown if isinstance(b, dump.DumpedBatch) and not b.header.is_control for r in b.records()] == (
        model.records()
    )
    assert dump.leader_epochs(directory) == [(0, 0)]
    assert [entry.producer_id for entry in dump.snapshot(directory, model.log.next_offset)] == [9, 1]
    txns = [txn for base in files.segments for txn in dump.txn_index(directory, base)]
    assert [(txn.producer_id, txn.first_offset) for txn in txns] == aborted(model.log, 0, 10**6)
    assert dump.txn_index(directory, 10**6) == []
    assert next(dump.offset_index(directory, 0)).position > 0
    assert list(dump.time_index(directory, 0))[-1].timestamp == model.log.segments[0].max_timestamp


def test_dump_goes_on_behind_a_damaged_batch_and_stops_at_garbage(model: Model) -> None:
    directory = Directory(model.disk, NAME)
    whole = list(dump.batches(directory, 0))
    change(model.disk, FIRST + ".log", 70, b"\xff")
    again = list(dump.batches(directory, 0))
    assert len(again) == len(whole)
    assert isinstance(again[0], dump.DumpedBatch) and again[0].problem is not None
    model.disk.open(FIRST + ".log").truncate(1_000)
    assert isinstance(list(dump.batches(directory, 0))[-1], dump.Garbage)
    old = bytearray(build_batch([(None, b"v" * 50)]))
    old[16] = 1
    model.disk.open(FIRST + ".log").truncate(0)
    model.disk.open(FIRST + ".log").append(old)
    assert list(dump.batches(directory, 0)) == [dump.Garbage(0, len(old))], "format v1 is not read"


def test_a_damaged_epoch_checkpoint_is_not_shown(model: Model) -> None:
    change(model.disk, f"{NAME}/{LEADER_EPOCHS}", 4, b"x")
    with pytest.raises(CheckpointError):
        dump.leader_epochs(Directory(model.disk, NAME))
