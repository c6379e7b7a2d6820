"""The small files beside the segments, byte for byte."""

import pytest

from ottla.log.epochs import Epochs
from ottla.log.files import checkpoint
from ottla.log.files.checkpoint import CheckpointError
from ottla.log.files.disk import Directory
from ottla.log.files.names import file_name, parse_directory, parse_name
from ottla.log.producers.snapshot import SnapshotEntry, SnapshotError, Snapshots, decode_snapshot, encode_snapshot
from ottla.model.ids import TopicPartition
from ottla.sim.world.disk import Crash, SimDisk


def test_offsets_round_trip() -> None:
    disk = SimDisk()
    offsets = {TopicPartition("b.c_d-e", 10): 5, TopicPartition("a", 0): 2**62}
    checkpoint.write_offsets(disk, checkpoint.RECOVERY_POINTS, offsets)
    assert disk.content("recovery-point-offset-checkpoint") == b"0\n2\na 0 4611686018427387904\nb.c_d-e 10 5\n"
    assert checkpoint.read_offsets(disk, checkpoint.RECOVERY_POINTS) == offsets
    assert checkpoint.read_offsets(disk, checkpoint.LOG_STARTS) == {}


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n", "0\nx\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na zero 1\n", "0\n1\na 0 1 2\n"]
)
def test_damaged_offsets(text: str) -> None:
    disk = SimDisk()
    disk.open(checkpoint.HIGH_WATERMARKS, create=True).append(text.encode())
    with pytest.raises(CheckpointError):
        checkpoint.read_offsets(disk, checkpoint.HIGH_WATERMARKS)


def test_a_checkpoint_is_old_or_new_whenever_the_power_fails() -> None:
    """Every operation of the write is the one where the machine dies."""
    for steps in range(1, 8):
        disk = SimDisk()
        checkpoint.write_offsets(disk, checkpoint.RECOVERY_POINTS, {TopicPartition("t", 0): 1})
        disk.crash_within(steps, lambda: None)
        try:
            checkpoint.write_offsets(disk, checkpoint.RECOVERY_POINTS, {TopicPartition("t", 0): 2})
            done = True
        except BaseException:  # HostCrashedError, on purpose no Exception
            done = False
        after = checkpoint.read_offsets(disk.crash(Crash.POWER), checkpoint.RECOVERY_POINTS)
        assert after[TopicPartition("t", 0)] in ((2,) if done else (1, 2))


def test_partition_metadata() -> None:
    disk = SimDisk()
    disk.make_directory("t-0")
    place = Directory(disk, "t-0")
    assert checkpoint.read_partition_metadata(place) is None
    topic_id = bytes(range(16))
    checkpoint.write_partition_metadata(place, topic_id)
    assert disk.content("t-0/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert checkpoint.read_partition_metadata(place) == topic_id


@pytest.mark.parametrize("text", [b"version: 7\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0", b"garbage"])
def test_damaged_partition_metadata(text: bytes) -> None:
    disk = SimDisk()
    disk.make_directory("t-0")
    disk.open("t-0/partition.metadata", create=True).append(text)
    with pytest.raises(CheckpointError):
        checkpoint.read_partition_metadata(Directory(disk, "t-0"))


def test_meta_properties() -> None:
    disk = SimDisk()
    assert checkpoint.read_meta_properties(disk) is None
    disk.open("meta.properties", create=True).append(b"#\n#Sat Jan 01 00:00:00 UTC 2026\nnode.id=1\nversion=1\n")
    assert checkpoint.read_meta_properties(disk) == {"node.id": "1", "version": "1"}
    checkpoint.write_meta_properties(disk, {"version": "1", "cluster.id": "x=y"})
    assert checkpoint.read_meta_properties(disk) == {"cluster.id": "x=y", "version": "1"}


def test_the_clean_mark_counts_once() -> None:
    disk = SimDisk()
    assert not checkpoint.take_clean_shutdown(disk)
    checkpoint.write_clean_shutdown(disk, 12)
    assert disk.content(".kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":12}'
    assert checkpoint.take_clean_shutdown(disk)
    assert not checkpoint.take_clean_shutdown(disk.crash(Crash.POWER))


def test_names() -> None:
    assert file_name(42, ".log", ".swap") == "00000000000000000042.log.swap"
    assert parse_name("00000000000000000042.log.swap") == (42, ".log", ".swap")
    assert parse_name("00000000000000000042.snapshot") == (42, ".snapshot", "")
    assert parse_name("00000000000000000042.seam") == (42, ".seam", "")
    for other in (
        "42.log",
        "leader-epoch-checkpoint",
        "00000000000000000042",
        "00000000000000000042.txt",
        "x" * 20 + ".log",
    ):
        assert parse_name(other) is None
    assert parse_directory("a-b-3") == ("a-b", 3)
    for other in ("a", "-3", "a-3.0123456789abcdef-delete", "a-3.x-future", "a-3.x-stray", "meta.properties"):
        assert parse_directory(other) is None


ENTRIES = [SnapshotEntry(7, 1, 99, 500, 4, 123_456, -1, -1), SnapshotEntry(2**40, 0, -1, -1, 0, 5, 3, 77)]


def test_snapshot_round_trip() -> None:
    data = encode_snapshot(ENTRIES)
    assert len(data) == 10 + 2 * 46
    assert decode_snapshot(data) == ENTRIES
    assert decode_snapshot(encode_snapshot([])) == []


@pytest.mark.parametrize(
    "damage", [lambda d: d[:5], lambda d: d[:-1], lambda d: b"\0\2" + d[2:], lambda d: d[:-1] + b"x"]
)
def test_damaged_snapshot(damage) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SnapshotError):
        decode_snapshot(damage(encode_snapshot(ENTRIES)))


def test_a_damaged_snapshot_gives_way_to_the_one_before() -> None:
    disk = SimDisk()
    disk.make_directory("t-0")
    snapshots = Snapshots(Directory(disk, "t-0"))
    snapshots.write(10, ENTRIES[:1])
    snapshots.write(20, ENTRIES)
    disk.open("t-0/00000000000000000020.snapshot").write(12, b"\xff")
    again = Snapshots(Directory(disk, "t-0"))
    again.discover(disk.list("t-0"))
    assert again.offsets == [10, 20]
    assert again.newest(30) == ((10, ENTRIES[:1]), [20])
    assert again.offsets == [10, 20], "who only looks changes nothing"
    assert again.take_newest(30) == (10, ENTRIES[:1])
    assert again.offsets == [10] and disk.list("t-0") == ["00000000000000000010.snapshot"]
    assert again.take_newest(9) is None


def epochs(*entries: tuple[int, int]) -> Epochs:
    disk = SimDisk()
    disk.make_directory("t-0")
    made = Epochs(Directory(disk, "t-0"))
    for epoch, start in entries:
        made.assign(epoch, start)
    return made


def test_epochs_file() -> None:
    made = epochs((0, 0), (2, 10))
    disk = made._directory.disk
    assert isinstance(disk, SimDisk)
    assert disk.content("t-0/leader-epoch-checkpoint") == b"0\n2\n0 0\n2 10\n"
    again = Epochs(made._directory)
    assert again.load() and again.entries == [(0, 0), (2, 10)] and again.latest == 2
    disk.open("t-0/leader-epoch-checkpoint").append(b"garbage")
    assert not Epochs(made._directory).load()


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 5)), (1, (1, 10)), (2, (2, 20)), (3, (2, 20)), (4, (4, 99)), (5, (-1, -1))],
)
def test_where_an_epoch_ends(epoch: int, answer: tuple[int, int]) -> None:
    """The log ends at 99. Epoch 0 is older than anything known: all of it lies before epoch 1."""
    assert epochs((1, 5), (2, 10), (4, 20)).end_offset(epoch, 99) == answer


def test_epochs_of_an_empty_log() -> None:
    made = epochs()
    assert made.end_offset(3, 0) == (-1, -1) and made.epoch_at(0) == -1


def test_epoch_at() -> None:
    made = epochs((1, 5), (2, 10))
    assert [made.epoch_at(offset) for offset in (4, 5, 9, 10, 500)] == [-1, 1, 1, 2, 2]


def test_an_epoch_may_replace_what_never_got_records() -> None:
    made = epochs((1, 5), (2, 10), (3, 10))
    assert made.entries == [(1, 5), (3, 10)]
    made.assign(3, 50)
    assert made.entries == [(1, 5), (3, 10)]


def test_cutting_epochs() -> None:
    made = epochs((1, 5), (2, 10), (4, 20))
    made.truncate_from_end(15)
    assert made.entries == [(1, 5), (2, 10)] and made.latest == 2
    made.truncate_from_start(12)
    assert made.entries == [(2, 12)]
    made.truncate_from_start(12)
    made.truncate_from_end(12)
    assert made.entries == [] and made.latest == -1
