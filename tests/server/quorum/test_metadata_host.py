"""MetadataHost: formatting, restarts, identity, producer ids, snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.admin import Admin

from ottla.cluster.commands.alter_configs import ConfigAlteration, IncrementalAlterConfigs, Op
from ottla.cluster.commands.create_topics import CreateTopics, TopicToCreate
from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic
from ottla.cluster.entities import PartitionsAdded, Topic, TopicCreated, TopicDeleted
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Item
from ottla.cluster.state import JournalError
from ottla.cluster.store import DIRECTORY
from ottla.log.files.checkpoint import read_meta_properties
from ottla.machine.kit import Result
from ottla.machine.stepped import in_one_go
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import uuid_bytes
from ottla.model.resources import Resource
from ottla.server.storage.identity import BOOTSTRAP, IdentityError
from ottla.server.storage.replica_changes import ReplicaChanges
from ottla.sim.world.disk import Crash, DiskFaults, SimDisk
from ottla.wire.journal import cluster_metadata as journal


def test_a_fresh_directory_is_formatted_like_kafkas() -> None:
    admin = Admin()
    disk = admin.disks["data"]
    properties = read_meta_properties(disk)
    assert properties is not None
    assert sorted(properties) == ["cluster.id", "directory.id", "node.id", "version"]
    assert (properties["version"], properties["node.id"]) == ("1", "1")
    assert properties["cluster.id"] == admin.host.cluster_id and len(uuid_bytes(admin.host.cluster_id)) == 16
    assert uuid_bytes(properties["directory.id"]) == admin.host.directory_ids[0]
    assert disk.exists(BOOTSTRAP)
    assert sorted(disk.list(DIRECTORY)) == [
        f"{0:020d}.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    ]


def test_everything_is_there_after_a_restart() -> None:
    admin = Admin()
    admin.create("t", 3, retention_ms="5")
    first = admin.host.state.topics["t"]
    cluster_id = admin.host.cluster_id
    again = Admin(admin.stop())
    assert again.host.cluster_id == cluster_id
    assert again.host.state.topics["t"] == first  # with the same leader epochs: it stopped in order
    assert again.host.state.configs[Resource(2, "t")] == {"retention.ms": "5"}
    assert again.member.quorum.epoch == admin.member.quorum.epoch + 1
    assert again.partitions.get("t", 2) is not None


def test_a_crash_begins_new_leader_epochs() -> None:
    admin = Admin()
    admin.create("t", 2)
    again = Admin({"data": admin.disks["data"].crash(Crash.PROCESS)})
    assert [state.leader_epoch for state in again.host.state.topics["t"].partitions] == [1, 1]


def test_changes_reach_the_partitions_before_the_reply() -> None:
    admin = Admin()
    admin.create("t", 3)
    created, added = admin.changes
    assert isinstance(created, TopicCreated)
    assert isinstance(added, PartitionsAdded) and len(added.partitions) == 3
    assert admin.partitions.get("t", 2) is not None
    admin.changes.clear()
    admin.submit(DeleteTopics((DoomedTopic("t"),)))
    assert [type(change) for change in admin.changes] == [TopicDeleted]
    assert admin.partitions.get("t", 0) is None


def test_a_mistake_with_one_topic_keeps_no_other_from_its_partitions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add = ReplicaChanges._add

    def failing(self: ReplicaChanges, topic: Topic, *args: Any, **named: Any) -> Iterator[None]:
        assert topic.name != "bad", "a mistake of ours"
        return add(self, topic, *args, **named)

    monkeypatch.setattr(ReplicaChanges, "_add", failing)
    admin = Admin()
    admin.submit(CreateTopics((TopicToCreate("bad", 1, 1), TopicToCreate("good", 1, 1))))
    assert "PartitionsAdded could not be followed" in caplog.text
    assert admin.partitions.get("good", 0) is not None


def test_settings_change_at_once() -> None:
    admin = Admin()
    admin.create("t")
    partition = admin.partitions.find("t", 0)
    resource = Resource(2, "t")
    admin.submit(IncrementalAlterConfigs(((resource, (ConfigAlteration("max.message.bytes", Op.SET, "99"),)),)))
    assert partition.log.config.max_message_bytes == 99
    broker = Resource(4, "1")
    admin.submit(IncrementalAlterConfigs(((broker, (ConfigAlteration("log.retention.ms", Op.SET, "7"),)),)))
    assert partition.log.config.retention_ms == 7


def test_defaults_may_change_while_the_node_runs() -> None:
    admin = Admin(properties={"num.partitions": "2"})
    (outcome,) = admin.submit(CreateTopics((TopicToCreate("t"),)))
    assert outcome.partitions == 2


def test_producer_ids_never_repeat() -> None:
    admin = Admin()
    first = [admin.next_producer_id() for _ in range(1_500)]
    assert first == list(range(1_500))
    again = Admin(admin.stop())
    assert again.next_producer_id() == 2_000


def test_directories_of_another_node_or_cluster_are_refused() -> None:
    disks = Admin().stop()
    with pytest.raises(IdentityError, match="belongs to node 1, this is node 2"):
        Admin(disks, properties={"node.id": "2"})
    other = Admin(seed=2).stop()
    with pytest.raises(IdentityError, match="different clusters"):
        Admin({"data": disks["data"], "more": other["data"]})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "does not say cluster.id and node.id"),
        (b"\x00\xff garbage\n\x01", "does not say cluster.id and node.id"),
        (b"version=1\nnode.id=1\n", "does not say cluster.id"),
        (b"version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\n", "does not say node.id"),
        (b"version=1\nnode.id=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\ndirectory.id=x\n", "is damaged: "),
    ],
)
def test_damaged_meta_properties_are_neither_believed_nor_replaced(content: bytes, told: str) -> None:
    disks = Admin().stop()
    disks["data"].remove("meta.properties")
    disks["data"].open("meta.properties", create=True).append(content)
    with pytest.raises(IdentityError, match=told) as raised:
        Admin(disks)
    assert raised.value.hint
    assert disks["data"].open("meta.properties").read(0, 1000) == content


def test_a_directory_that_is_added_joins_the_cluster() -> None:
    admin = Admin()
    cluster_id = admin.host.cluster_id
    again = Admin({**admin.stop(), "more": SimDisk()})
    properties = read_meta_properties(again.disks["more"])
    assert properties is not None and properties["cluster.id"] == cluster_id
    assert not again.disks["more"].exists(BOOTSTRAP)
    assert len(set(again.host.directory_ids)) == 2
    assert again.host.state.brokers[1].directories == again.host.directory_ids


def test_a_missing_disk_is_not_a_new_cluster() -> None:
    disks = dict(Admin({"data": SimDisk(), "more": SimDisk()}).stop())
    assert Admin({"more": disks["more"], "data": disks["data"]}).host.cluster_id  # in any order
    with pytest.raises(IdentityError, match="is a disk missing"):
        Admin({"data": SimDisk(), "more": disks["more"]})
    with pytest.raises(IdentityError, match="shall lie in elsewhere"):
        Admin(properties={"metadata.log.dir": "elsewhere"})


def test_power_lost_while_formatting_is_no_harm() -> None:
    """Whatever of the first start is lost, the next one begins again or goes on."""
    for seed in range(40):
        admin = Admin({"data": SimDisk()}, seed=seed)
        disk = admin.disks["data"]
        disk.rng.seed(seed)
        again = Admin({"data": disk.crash(Crash.POWER)})
        assert again.host.state.features["metadata.version"] == 30


def test_a_disk_that_cannot_be_written_refuses_commands_and_recovers() -> None:
    disk = SimDisk(faults=DiskFaults())
    admin = Admin({"data": disk})
    disk.faults.capacity_bytes = 0
    with pytest.raises(ApiError) as refused:
        admin.submit(CreateTopics((TopicToCreate("t", 1, 1),)))
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" not in admin.host.state.topics
    disk.faults.capacity_bytes = None
    admin.create("t")
    assert list(Admin({"data": disk.crash(Crash.PROCESS)}).host.state.topics) == ["t"]


def test_snapshots_by_size_and_by_the_clock() -> None:
    admin = Admin(properties={"metadata.log.max.record.bytes.between.snapshots": "2000"})
    disk = admin.disks["data"]

    def snapshots() -> list[str]:
        return [name for name in disk.list(DIRECTORY) if name.endswith(".checkpoint")]

    for number in range(10):
        admin.create(f"t{number}", 2)
    assert snapshots()
    admin.create("last")
    end = admin.host.end_offset
    admin.member.snapshots.upkeep(admin.now_ms)
    assert f"{end:020d}-{admin.member.quorum.epoch:010d}.checkpoint" not in snapshots()
    admin.member.snapshots.upkeep(admin.now_ms + 3_600_000)
    assert f"{end:020d}-{admin.member.quorum.epoch:010d}.checkpoint" in snapshots()
    again = Admin(admin.stop())
    assert len(again.host.state.topics) == 11


def test_no_snapshot_is_written_of_the_middle_of_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.cluster.journal.RECORDS_PER_METADATA_BATCH_MAX", 5)  # so that a topic is many batches,
    monkeypatch.setattr("ottla.cluster.store.SCAN_READ_BYTES", 600)  # which are not read back together
    admin = Admin(properties={"metadata.log.max.record.bytes.between.snapshots": "300"})
    admin.create("t", 40)
    assert any(name.endswith(".checkpoint") for name in admin.disks["data"].list(DIRECTORY))
    assert len(Admin(admin.stop()).host.state.topics["t"].partitions) == 40


def test_a_record_that_cannot_be_applied_is_the_end() -> None:
    """Whether it comes from the journal, or a command of a sole voter wrote it and could not follow it."""

    class Absurd:
        def decide(self, view: object, now_ms: int) -> Result[MetadataEntry, Any]:
            return Result([MetadataEntry(journal.RemoveTopicRecord(topic_id=bytes(16)))], "done")

    def from_the_journal(admin: Admin) -> None:
        admin.member.controller.close()
        item = Item(admin.host.end_offset, 1, 0, MetadataEntry(journal.RemoveTopicRecord(topic_id=bytes(16))))
        with pytest.raises(JournalError):
            in_one_go(admin.host.taking([item.content], item.epoch, item.offset + 1))

    def by_a_command(admin: Admin) -> None:
        with pytest.raises(JournalError):
            admin.member.controller.submit(Absurd())

    for cause in (from_the_journal, by_a_command):
        admin, ends = Admin(), []
        admin.host.failures.add(lambda ends=ends: ends.append(1))
        cause(admin)
        assert ends == [1] and not admin.member.controller.active
        before = admin.host.end_offset
        in_one_go(admin.host.taking([MetadataEntry(journal.NoOpRecord())], 1, before + 1))
        assert admin.host.end_offset == before
        with pytest.raises(JournalError):
            asyncio.run(admin.host.until(lambda: False))


def test_features_are_known_up_to_the_end_of_the_journal() -> None:
    admin = Admin()
    before = admin.host.features_epoch
    admin.create("t")
    assert admin.host.features_epoch == admin.host.end_offset - 1 > before


def test_a_large_snapshot_is_written_while_everything_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNAPSHOT_AT_ONCE_PARTITIONS", 2)
    monkeypatch.setattr("ottla.cluster.journal.RECORDS_PER_METADATA_BATCH_MAX", 10)
    admin = Admin()
    admin.create("t", 100)
    disk = admin.disks["data"]

    def snapshots() -> list[str]:
        return [name for name in disk.list(DIRECTORY) if name.endswith(".checkpoint")]

    async def write() -> None:
        admin.member.snapshots.upkeep(admin.now_ms + 10 * 3_600_000)
        await asyncio.sleep(0)
        assert not snapshots(), "it takes more than one turn of the loop"
        admin.create("meanwhile", 3)
        while not snapshots():  # noqa: ASYNC110  # the turns are what is waited for
            await asyncio.sleep(0)

    asyncio.run(write())
    state = admin.host.state
    again = Admin({"data": disk.crash(Crash.POWER)})
    assert {name: len(topic.partitions) for name, topic in again.host.state.topics.items()} == {
        "t": 100,
        "meanwhile": 3,
    }
    assert again.host.state.topics["t"].id == state.topics["t"].id
