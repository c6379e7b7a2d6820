"""What becomes of a topic's files on a live node: created, deleted, made anew, found again after a stop or a crash."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import FETCH_VERSION, create, delete, eventually, fetch_request, produce, values_of
from tests.support.requests.raw import RawConnection

from ottla.log.files import checkpoint
from ottla.model.ids import TopicPartition
from ottla.server.ports.os_disk import OsDisk
from ottla.server.storage.directories import DataDirectory
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest

Factory = Callable[..., EmbeddedBroker]


def directories(path: Path, prefix: str = "t-") -> list[str]:
    """Names of partition directories; the topic id in those on their way out is left away."""
    found = (entry.name for entry in path.iterdir() if entry.is_dir() and entry.name.startswith(prefix))
    return sorted(name.split(".")[0] + "-" + name.rsplit("-", 1)[1] if "." in name else name for name in found)


def everything(connection: RawConnection, topic: str = "t", index: int = 0) -> list[bytes | None]:
    answer = connection.call(fetch_request({(topic, index): 0}), FETCH_VERSION)
    return values_of(answer)[topic, index]


def test_a_deleted_topic_leaves_at_once_and_its_files_later(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**{"log.segment.delete.delay.ms": 1_500})
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 3)
        produce(connection, "t", [b"old"])
        delete(connection, "t")
        assert "t-0-delete" in directories(broker.data_dir)
        create(connection, "t", 2)
        assert everything(connection) == []
        assert produce(connection, "t", [b"new"]) == (0, 0)
        produce(connection, "t", [b"new"], index=1)
        eventually(lambda: directories(broker.data_dir) == ["t-0", "t-1"], "the old files are gone")
        assert everything(connection) == [b"new"]


def test_what_a_stop_left_of_a_deleted_topic_goes_at_the_next_start(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", 2)
        produce(connection, "t", [b"x"])
        delete(connection, "t")
    ottla_broker.stop()
    assert "t-0-delete" in directories(ottla_broker.data_dir)
    ottla_broker.start()
    eventually(lambda: directories(ottla_broker.data_dir) == [], "it is gone")


def test_a_topic_nobody_opened_is_deleted_without_being_opened(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", 200)
        for index in range(200):
            produce(connection, "t", [b"x"], index=index)
    ottla_broker.stop()
    ottla_broker.start()
    assert ottla_broker.node is not None
    with RawConnection(ottla_broker.bootstrap) as connection:
        delete(connection, "t")
    names = functools.partial(directories, ottla_broker.data_dir)
    eventually(lambda: all(name.endswith("-delete") for name in names()), "they have their names for removal")
    assert not list(ottla_broker.node.partitions.opened())


def test_a_directory_the_cluster_does_not_know_is_set_aside(ottla_broker: EmbeddedBroker, tmp_path: Path) -> None:
    """As when a crash comes between the deletion in the metadata and the renaming of the directory."""
    home = ottla_broker.data_dir / "t-0"
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"old"])
        shutil.copytree(home, tmp_path / "kept")
        delete(connection, "t")
    ottla_broker.stop()
    shutil.copytree(tmp_path / "kept", home)
    ottla_broker.start()
    assert "t-0-stray" in directories(ottla_broker.data_dir)
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t")
        assert everything(connection) == []
        assert produce(connection, "t", [b"new"]) == (0, 0)


def test_files_of_an_older_topic_of_the_same_name_are_not_served(ottla_broker: EmbeddedBroker, tmp_path: Path) -> None:
    home = ottla_broker.data_dir / "t-0"
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"old"])
        shutil.copytree(home, tmp_path / "kept")
        delete(connection, "t")
        create(connection, "t")
    ottla_broker.stop()
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(tmp_path / "kept", home)
    ottla_broker.start()
    with RawConnection(ottla_broker.bootstrap) as connection:
        assert everything(connection) == []
        assert produce(connection, "t", [b"new"]) == (0, 0)
    assert directories(ottla_broker.data_dir)[-1] == "t-0-stray"


def test_a_clean_stop_is_not_followed_by_a_scan(ottla_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", 100)
        for index in range(100):
            produce(connection, "t", [b"x"], index=index)
    ottla_broker.stop()
    recovered: list[Any] = []
    monkeypatch.setattr("ottla.log.recovery.recover.scan", lambda *args, **_: recovered.append(args) or [])
    ottla_broker.start()
    assert ottla_broker.node is not None
    assert len(list(ottla_broker.node.partitions.opened())) < 100, "opened when they are needed"
    with RawConnection(ottla_broker.bootstrap) as connection:
        assert everything(connection, index=99) == [b"x"]
        assert produce(connection, "t", [b"y"], index=99) == (0, 1)
    assert recovered == []


def crash(broker: EmbeddedBroker, copy: Path) -> EmbeddedBroker:
    """A node on what a kill -9 at this moment would leave: all that was written, without any good-bye."""
    shutil.copytree(broker.data_dir, copy)
    return EmbeddedBroker(copy)


def delete_records(connection: RawConnection, *wanted: tuple[str, int, int]) -> list[tuple[int, int]]:
    """(error, low watermark) of each (topic, partition, offset)."""
    topic = DeleteRecordsRequest.Topic
    topics = [
        topic(name=name, partitions=[topic.Partition(partition_index=index, offset=offset)])
        for name, index, offset in wanted
    ]
    answer: Any = connection.call(DeleteRecordsRequest(topics=topics, timeout_ms=5_000), 2)
    return [(part.error_code, part.low_watermark) for topic in answer.topics for part in topic.partitions]


def test_deleted_records_stay_deleted(ottla_broker: EmbeddedBroker, tmp_path: Path) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t")
        create(connection, "u")
        for number in range(5):
            produce(connection, "t", [b"%d" % number])
            produce(connection, "u", [b"%d" % number])
        assert delete_records(connection, ("t", 0, 3), ("u", 0, -1)) == [(0, 3), (0, 5)]
        assert delete_records(connection, ("t", 0, 1), ("t", 0, 9)) == [(1, -1)], "the last word counts"
        with crash(ottla_broker, tmp_path / "copy") as again, RawConnection(again.bootstrap) as other:
            answer: Any = other.call(fetch_request({("t", 0): 3, ("u", 0): 5}), FETCH_VERSION)
            assert values_of(answer) == {("t", 0): [b"3", b"4"], ("u", 0): []}
            assert [part.log_start_offset for topic in answer.responses for part in topic.partitions] == [3, 5]


def test_records_of_a_compacted_topic_are_not_deleted(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "k", cleanup_policy="compact")
        create(connection, "kd", cleanup_policy="compact,delete")
        assert delete_records(connection, ("k", 0, 0), ("kd", 0, 0)) == [(44, -1), (0, 0)]


def test_an_older_checkpoint_never_replaces_a_newer_one(tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path))
    directory = DataDirectory(str(tmp_path), disk)
    name = TopicPartition("t", 0)
    directory.write(checkpoint.LOG_STARTS, {name: 5}, 2)
    directory.write(checkpoint.LOG_STARTS, {name: 3}, 1)
    assert checkpoint.read_offsets(disk, checkpoint.LOG_STARTS) == {name: 5}
    disk.close()


def test_checkpoints_follow_and_forget(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**{"log.flush.offset.checkpoint.interval.ms": 100})

    def watermarks() -> dict[TopicPartition, int]:
        return checkpoint.read_offsets(OsDisk(str(broker.data_dir)), checkpoint.HIGH_WATERMARKS)

    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"x"] * 7)
        eventually(lambda: watermarks() == {TopicPartition("t", 0): 7}, "the checkpoint says so")
        delete(connection, "t")
        eventually(lambda: watermarks() == {}, "it is forgotten")


def test_sizes_are_those_of_the_files(ottla_broker: EmbeddedBroker) -> None:
    def sizes() -> dict[int, int]:
        with RawConnection(ottla_broker.bootstrap) as connection:
            answer: Any = connection.call(DescribeLogDirsRequest(topics=None), 4)
        (result,) = answer.results
        assert result.error_code == 0
        return {part.partition_index: part.partition_size for topic in result.topics for part in topic.partitions}

    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", 30, internal_segment_bytes=2_000)
        for index in range(30):
            for _ in range(index % 5):
                produce(connection, "t", [b"x" * 1_000], index=index)
    expected = {
        index: sum(file.stat().st_size for file in (ottla_broker.data_dir / f"t-{index}").glob("*.log"))
        for index in range(30)
    }
    assert sizes() == expected
    ottla_broker.stop()
    ottla_broker.start()
    assert sizes() == expected
