"""A log that is damaged on disk: nothing that was acknowledged goes without a word."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.server.nodes import create as create_topic
from tests.server.nodes import run, running, settings, until
from tests.server.replication.test_disks import write
from tests.server.talk import FETCH_VERSION, create, delete, fetch_request, produce, values_of
from tests.support.requests.raw import RawConnection

from ottla.log.files.checkpoint import CLEAN_SHUTDOWN
from ottla.log.files.disk import StorageError
from ottla.model.errors import ErrorCode
from ottla.records.batch import MAGIC_AT, headers
from ottla.server.node import Node
from ottla.server.ports.os_disk import OsFile
from ottla.server.ports.ports import system_ports
from ottla.testing.broker import EmbeddedBroker

SEGMENT = f"{0:020d}.log"


def fill(broker: EmbeddedBroker) -> None:
    with broker, RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 2)
        for number in range(3):
            assert produce(connection, "t", [b"%d" % number]) == (0, number)
            assert produce(connection, "t", [b"other"], index=1) == (0, number)


def last_batch(path: Path) -> int:
    """Where it begins."""
    content = path.read_bytes()
    return [position for position, _ in headers(memoryview(content))][-1]


def error_of(connection: RawConnection, index: int) -> int:
    answer: Any = connection.call(fetch_request({("t", index): 0}), FETCH_VERSION)
    return int(answer.responses[0].partitions[0].error_code)


def test_what_was_closed_in_order_is_not_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The partition is refused, start after start, until somebody decides; others go on."""
    broker = EmbeddedBroker(tmp_path)
    fill(broker)
    path = tmp_path / "t-0" / SEGMENT
    content = bytearray(path.read_bytes())
    content[last_batch(path) + MAGIC_AT] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        caplog.clear()
        with broker, RawConnection(broker.bootstrap) as connection:
            assert error_of(connection, 0) == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(connection, "t", [b"x"])[0] == ErrorCode.KAFKA_STORAGE_ERROR
            assert error_of(connection, 1) == ErrorCode.NONE
        assert caplog.text.count("but the log was closed in order at offset 3") == 1
        assert path.read_bytes() == content
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    with broker, RawConnection(broker.bootstrap) as connection:
        assert values_of(connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)) == {("t", 0): [b"0", b"1"]}
        assert "t-0 was damaged and lost records that had been synced: it ends at offset 2, not at 3" in caplog.text
        assert produce(connection, "t", [b"x"]) == (0, 2)


def test_a_topic_of_the_same_name_begins_anew(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    fill(broker)
    (tmp_path / "t-0" / SEGMENT).write_bytes(b"")
    with broker, RawConnection(broker.bootstrap) as connection:
        assert error_of(connection, 0) == ErrorCode.KAFKA_STORAGE_ERROR
        delete(connection, "t")
        create(connection, "t")
        assert produce(connection, "t", [b"x"]) == (0, 0)


def test_a_recovery_that_failed_is_owed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A partition that could not be recovered after a crash is not taken for one that was closed in order."""
    broker = EmbeddedBroker(tmp_path)
    fill(broker)
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    with (tmp_path / "t-0" / SEGMENT).open("ab") as file:
        file.write(b"torn")
    read = OsFile.read

    def fail(file: OsFile, position: int, size_bytes: int) -> bytes:
        if file.path.startswith("t-0/") and file.path.endswith(".log"):
            raise StorageError(errno.EIO, "no")
        return read(file, position, size_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(OsFile, "read", fail)
        broker.start()
        broker.stop()
    assert "t-0 cannot be opened" in caplog.text
    with broker, RawConnection(broker.bootstrap) as connection:
        assert values_of(connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)) == {("t", 0): [b"0", b"1", b"2"]}
        assert "t-0: 4 bytes behind offset 3 were no whole batch; cut off" in caplog.text
        assert produce(connection, "t", [b"x"]) == (0, 3)


def test_a_directory_that_cannot_be_read_is_told_of_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = EmbeddedBroker(tmp_path)
    with broker, RawConnection(broker.bootstrap) as connection:
        create(connection, "t", partitions=5)
        for index in range(5):
            assert produce(connection, "t", [b"x"], index=index) == (0, 0)
    (tmp_path / CLEAN_SHUTDOWN).unlink()

    def fail(file: OsFile, position: int, size_bytes: int) -> bytes:
        if file.path.endswith(".log") and file.path.startswith("t-"):
            raise StorageError(errno.EIO, "no")
        return read(file, position, size_bytes)

    read = OsFile.read
    with monkeypatch.context() as patch:
        patch.setattr(OsFile, "read", fail)
        broker.start()
        broker.stop()
    told = [each.getMessage() for each in caplog.records if "cannot be opened" in each.getMessage()]
    assert len(told) == 1 and "5 partitions cannot be opened, the first is t-" in told[0]


def test_in_a_cluster_others_lead_and_the_next_start_fetches_it_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        values = settings(tmp_path, 3, min_insync_replicas="2")
        async with running(values) as nodes:
            assert (await create_topic(nodes[1], "t", partitions=1)).error_code == ErrorCode.NONE
            await until(lambda: all("t" in node.metadata.state.topics for node in nodes.values()))
            number = nodes[1].metadata.state.topics["t"].partitions[0].leader
            other = nodes[next(each for each in nodes if each != number)]
            await until(lambda: leads_three(nodes[number]))
            for _ in range(3):
                assert await write(nodes[number], "t", 0) == ErrorCode.NONE
            await nodes[number].stop()
            path = tmp_path / str(number) / "t-0" / SEGMENT
            content = bytearray(path.read_bytes())
            content[last_batch(path) + MAGIC_AT] ^= 1
            path.write_bytes(content)
            seen = other.metadata.state.topics["t"].partitions

            await start_again(nodes, values, number)
            await until(lambda: "was closed in order at offset 3" in caplog.text)
            await until(lambda: nodes[number].storage.directories[0].offline)
            assert seen[0].leader != number and number not in seen[0].isr
            assert path.read_bytes() == content
            await nodes[number].stop()

            await start_again(nodes, values, number)
            await until(lambda: number in seen[0].isr)
            assert nodes[number].partitions.find("t", 0).log.next_offset == 3

    run(test)


def leads_three(node: Node) -> bool:
    partition = node.partitions.get("t", 0)
    return partition is not None and partition.in_sync is not None and len(partition.in_sync.isr) == 3


async def start_again(nodes: dict[int, Node], values: list[dict[str, str]], number: int) -> None:
    nodes[number] = Node(values[number - 1], system_ports(values[number - 1]))
    await nodes[number].start()
