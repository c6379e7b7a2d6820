"""What is not provably ours is neither renamed nor removed nor formatted."""

from __future__ import annotations

import random
import re
from typing import Any, cast

import pytest
from tests.server.admin import StillLoop
from tests.server.storages import storage_of
from tests.server.talk import create, delete, eventually, produce
from tests.support.requests.raw import RawConnection

from ottla.cluster.entities import Broker
from ottla.cluster.state import ClusterState
from ottla.log.config import LogConfig
from ottla.log.files.disk import Directory
from ottla.log.log import Log
from ottla.log.recovery.leftovers import settle
from ottla.log.recovery.ownership import is_partition
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.server.loop.runtime import Runtime
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.directory_choice import settle_futures
from ottla.server.storage.formatting import format_directories
from ottla.server.storage.identity import IdentityError, write_identity
from ottla.server.storage.partitions import Partitions
from ottla.server.storage.removal import Doomed, mark_deleted, remove_all
from ottla.server.storage.vacancy import check_vacant
from ottla.sim.world.disk import SimDisk
from ottla.testing.broker import EmbeddedBroker as Node

ID = bytes(range(16))
PHOTOS = {
    "photos-2024/a.jpg": b"a",
    "photos-2024.backup-delete/a.jpg": b"b",
    "photos-7.0123-future/a.jpg": b"c",
    "photos-8.x-stray/a.jpg": b"d",
}


def put(disk: SimDisk, path: str, content: bytes = b"") -> None:
    home = path.rpartition("/")[0]
    if home:
        disk.make_directory(home)
    disk.open(path, create=True).append(content)


def content(disk: SimDisk, path: str) -> bytes:
    return disk.open(path).read(0, 100)


def joined(disk: SimDisk, clock: list[int]) -> Partitions:
    """A broker of a cluster of two, which just came back."""
    directories = [DataDirectory("/data", disk)]
    settle_futures(directories)
    runtime = Runtime(cast(Any, StillLoop()), now_ms=lambda: clock[0], rng=random.Random(1))
    configs = Configs({"log.dirs": "/data", "log.segment.delete.delay.ms": "60000"})
    storage = storage_of(runtime, configs, directories)
    partitions = storage.partitions
    state = ClusterState()
    for node_id in (1, 2):
        state.brokers[node_id] = Broker(node_id, 0, ID, (), (), None, fenced=False)
    in_one_go(storage.changes.loading(state))
    return partitions


def test_folders_that_look_like_partitions_stay_when_a_broker_joins() -> None:
    disk, clock = SimDisk(), [0]
    write_identity(disk, 1, "c", ID)
    for path, data in PHOTOS.items():
        put(disk, path, data)
    partitions = joined(disk, clock)
    clock[0] = 10**9
    remove_all(partitions.removal.take_due(clock[0], 100))
    assert {path: content(disk, path) for path in PHOTOS} == PHOTOS


def test_a_replica_that_is_no_longer_ours_goes_without_what_lies_beside_it() -> None:
    disk, clock = SimDisk(), [0]
    write_identity(disk, 1, "c", ID)
    for name in ("gone-0", "mixed-0"):
        Log.open(disk, name, LogConfig(), now_ms=0, topic_id=ID).close()
    put(disk, "mixed-0/notes.txt", b"mine")
    partitions = joined(disk, clock)
    clock[0] = 10**9
    remove_all(partitions.removal.take_due(clock[0], 100))
    (left,) = [name for name in disk.list("") if "-0" in name]
    assert left.startswith("mixed-0") and disk.list(left) == ["notes.txt"]


@pytest.mark.parametrize(
    "path",
    [
        "__cluster_metadata-0/00000000000000000000.log",
        "__cluster_metadata-0/00000000000000000007-0000000001.checkpoint",
        "__cluster_metadata-0/quorum-state",
        "t-0/partition.metadata",
        "recovery-point-offset-checkpoint",
        ".kafka_cleanshutdown",
    ],
)
def test_a_data_directory_without_its_meta_properties_is_not_fresh(path: str) -> None:
    disk = SimDisk()
    put(disk, "bootstrap.checkpoint")
    put(disk, path)
    with pytest.raises(
        IdentityError, match=r"/data has lost its meta\.properties: .* holds " + re.escape(path.partition("/")[0])
    ) as raised:
        check_vacant(["/new", "/data"], {"/new": SimDisk(), "/data": disk}.__getitem__)
    assert raised.value.hint and "cluster.id" in raised.value.hint
    with pytest.raises(IdentityError, match="has lost its"):
        format_directories(
            [("/data", disk)], "/data", node_id=1, cluster_id="c", voters=None, now_ms=0, rng=random.Random(1)
        )


@pytest.mark.parametrize("file", ["00000000000000000005.log", "notes.txt"])
def test_a_directory_that_came_while_the_node_runs_is_not_taken_over(
    ottla_broker: Node, caplog: pytest.LogCaptureFixture, file: str
) -> None:
    """Names of files prove less than a listing at the start: then nobody was here who could have made them."""
    mine = ottla_broker.data_dir / "orders-0" / file
    mine.parent.mkdir()
    mine.write_bytes(b"not yours")
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "orders", 2)
        batch = build_batch([Record(-1, 0, None, b"v")])
        assert [produce(connection, "orders", bytearray(batch), index=index)[0] for index in (0, 1)] == [
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.NONE,
        ]
        eventually(lambda: [each for each in caplog.records if "holds files of somebody else" in each.message])
        assert produce(connection, "orders", bytearray(batch), index=0)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        delete(connection, "orders")
    ottla_broker.clock.advance("2h")
    assert mine.read_bytes() == b"not yours"
    ottla_broker.restart()
    ottla_broker.clock.advance("2h")
    (left,) = ottla_broker.data_dir.rglob(file)
    assert left.read_bytes() == b"not yours", "at most set aside, as something that belongs to no topic"


def test_what_could_not_be_made_to_its_end_is_taken_up_again() -> None:
    """A file of ours without partition.metadata: the disk failed in between."""
    disk, clock = SimDisk(), [0]
    write_identity(disk, 1, "c", ID)
    partitions = joined(disk, clock)
    (directory,) = partitions.directories
    name = TopicPartition("t", 0)
    partitions.pending_checkpoints.begin_anew(directory, name)
    put(disk, "t-0/00000000000000000000.log")
    assert partitions._settle_home(directory, name, ID) is False
    directory.forget(name)
    with pytest.raises(ApiError):
        partitions._settle_home(directory, name, ID)


def test_only_a_partitions_own_files_are_leftovers() -> None:
    disk = SimDisk()
    Log.open(disk, "t-0", LogConfig(), now_ms=0, topic_id=ID).close()
    ours = ["00000000000000000007.log.deleted", "partition.metadata.tmp", "00000000000000000000.index.tmp"]
    others = ["notes.tmp", "old.deleted", "x.swap", "y.cleaned", "0.log.deleted", "00000000000000000007.log.orig"]
    for name in ours + others:
        put(disk, f"t-0/{name}")
    left = settle(Directory(disk, "t-0"), LogConfig(), 0)
    assert set(others) <= set(left) and not set(ours) & set(left)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("t-0/partition.metadata", True),
        ("t-0/00000000000000000000.log", True),
        ("t-0/00000000000000000005.timeindex.deleted", True),
        ("t-0/00000000000000000005.seam", True),
        ("t-0/a.jpg", False),
        ("t-0/00000000000000000000.jpg", False),
        ("t-0/0.log", False),
    ],
)
def test_a_partition_is_known_by_its_files(path: str, expected: bool) -> None:
    disk = SimDisk()
    put(disk, path)
    assert is_partition(Directory(disk, "t-0")) is expected


def test_an_interrupted_removal_is_finished() -> None:
    disk, clock = SimDisk(), [0]
    write_identity(disk, 1, "c", ID)
    for name in (f"t-0.{ID.hex()}-delete", "t-0.backup-delete"):
        disk.make_directory(name)
    remove_all(joined(disk, clock).removal.take_due(0, 10))
    assert "t-0.backup-delete" in disk.list("")
    assert f"t-0.{ID.hex()}-delete" not in disk.list("")


@pytest.mark.parametrize("restarted", [False, True])
def test_of_a_deleted_partition_nothing_is_left(restarted: bool) -> None:
    """It was rolled, and nothing of it was synced: a seam lies beside the segments."""
    disk, clock = SimDisk(), [0]
    write_identity(disk, 1, "c", ID)
    log = Log.open(disk, "t-0", LogConfig(), now_ms=0, topic_id=ID)
    log.append(build_batch([Record(-1, 0, None, b"v")]), 0, 0)
    log.roll(0)
    assert "00000000000000000001.seam" in disk.list("t-0")
    mark_deleted(log.directory, ID)
    if restarted:
        remove_all(joined(disk, clock).removal.take_due(0, 10))
    else:
        Doomed(log.directory, log).remove()
    assert not [name for name in disk.list("") if name.startswith("t-0")]


def test_the_removal_of_a_directory_with_something_else_in_it_leaves_that() -> None:
    disk = SimDisk()
    put(disk, "t-0/a.jpg", b"a")
    put(disk, "t-0/00000000000000000000.log")
    Doomed(Directory(disk, "t-0")).remove()
    assert disk.list("t-0") == ["a.jpg"]


@pytest.mark.parametrize("path", ["thesis.txt", "photos/a.jpg", "photos-2024/a.jpg", "x-1.y-delete/z"])
def test_a_directory_of_somebody_else_is_not_formatted(path: str) -> None:
    disk = SimDisk()
    put(disk, path, b"mine")
    with pytest.raises(
        IdentityError, match=r"/data is no data directory: .* holds " + path.partition("/")[0]
    ) as raised:
        format_directories(
            [("/data", disk)], "/data", node_id=1, cluster_id="c", voters=None, now_ms=0, rng=random.Random(1)
        )
    assert raised.value.hint
    assert content(disk, path) == b"mine"
    assert disk.list("") == [path.partition("/")[0]]


def test_what_a_crash_within_formatting_leaves_is_no_obstacle() -> None:
    disk = SimDisk()
    for path in (".lock", "bootstrap.checkpoint", "meta.properties.tmp", "lost+found/x", "quorum-doubt"):
        put(disk, path)
    for suffix in ("", ".part"):
        put(disk, f"__cluster_metadata-0/00000000000000000000-0000000000.checkpoint{suffix}")
    check_vacant(["/data"], lambda _: disk)


def test_a_node_does_not_start_in_a_folder_of_somebody_else(ottla_broker: Node) -> None:
    data = ottla_broker.data_dir
    ottla_broker.stop()
    (data / "photos-2024").mkdir()
    (data / "photos-2024" / "a.jpg").write_text("a")
    ottla_broker.start()
    assert (data / "photos-2024" / "a.jpg").read_text() == "a", "beside partitions it is left alone"
    ottla_broker.stop()
    (data / "meta.properties").unlink()
    before = sorted(each.name for each in data.iterdir())
    with pytest.raises(IdentityError, match=r"holds photos-2024"):
        ottla_broker.start()
    assert sorted(each.name for each in data.iterdir()) == before
