"""A data directory that fails under a broker of a cluster: others take the lead, the rest of the broker goes on."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.server.nodes import ask, run, settings, until
from tests.server.talk import produce_request

from ottla.log.files.disk import StorageError
from ottla.model.errors import ErrorCode
from ottla.replica.partition import Partition
from ottla.server.node import Node
from ottla.server.ports.os_disk import OsDisk
from ottla.server.ports.ports import system_ports
from ottla.server.storage.opening import Opening
from ottla.sim.world.disk import SimDisk
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest

BAD = "bad"


def node_with(values: dict[str, str], disk: SimDisk) -> Node:
    """A node whose directory BAD is simulated."""
    ports = system_ports(values)._replace(
        disk=lambda path: disk if path == BAD else OsDisk(path, open_files_max=100),
        lock=lambda path: lambda: None,
    )
    return Node(values, ports)


async def create(node: Node, name: str, replicas: list[int], partitions: int) -> None:
    assignment = CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[assignment(partition_index=index, broker_ids=replicas) for index in range(partitions)],
        configs=[],
    )
    answer = await ask(node, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    assert answer.topics[0].error_code == 0, answer.topics[0]


async def write(node: Node, topic: str, index: int) -> int:
    """The error code."""
    request: ProduceRequest = produce_request({(topic, index): [b"x" * 100]})
    request.topic_data[0].topic_id = node.metadata.state.topics[topic].id
    answer: Any = await ask(node, request)
    return int(answer.responses[0].partition_responses[0].error_code)


def test_others_lead_what_lay_in_a_directory_that_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        values = settings(tmp_path, 3)
        values[0]["log.dirs"] += f",{BAD}"
        disk = SimDisk()
        nodes = {1: node_with(values[0], disk)} | {n + 1: Node(values[n], system_ports(values[n])) for n in (1, 2)}
        try:
            await asyncio.gather(*(node.start() for node in nodes.values()))
            await _fail_and_look(nodes, disk)
        finally:
            await asyncio.gather(*(node.stop() for node in nodes.values()))

    run(test)
    (told,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    assert told.startswith(f"{BAD}: ") and "its 2 partitions answer with storage errors" in told


def test_a_directory_that_cannot_be_read_any_more_is_told_of_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A follower opens its partitions one after the other; the first that fails speaks for all."""
    open_log = Opening.open

    def fail(self: Opening) -> Partition:
        if self.directory.path == BAD:
            raise StorageError(errno.EIO, "it cannot be read")
        return open_log(self)

    async def test() -> None:
        values = settings(tmp_path, 3)
        values[0]["log.dirs"] += f",{BAD}"
        disk = SimDisk()
        others = {n + 1: Node(values[n], system_ports(values[n])) for n in (1, 2)}
        first = node_with(values[0], disk)
        try:
            await asyncio.gather(*(node.start() for node in (first, *others.values())))
            await create(others[2], "t", [2, 1, 3], 20)
            await until(lambda: len(first.storage.directories[1].partitions) == 10)
            await first.stop()
            monkeypatch.setattr(Opening, "open", fail)
            first = node_with(values[0], disk)
            await first.start()
            await until(lambda: first.storage.directories[1].offline)
            await until(lambda: first.rooms.replication._opening is None)  # type: ignore[union-attr]
        finally:
            await asyncio.gather(*(node.stop() for node in (first, *others.values())))

    run(test)
    (told,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    assert told.startswith(f"{BAD}: it cannot be read; its 10 partitions")


async def _fail_and_look(nodes: dict[int, Node], disk: SimDisk) -> None:
    first = nodes[1]
    await create(first, "t", [1, 2, 3], 4)
    await until(lambda: "t" in first.metadata.state.topics)  # the controller may be another node
    state = first.metadata.state.topics["t"].partitions
    for index in range(4):
        assert await write(first, "t", index) == 0
    bad = first.storage.directories[1]
    here = [name.partition for name in bad.partitions]
    assert len(here) == 2
    await until(lambda: all(state[index].directories[0] == bad.id for index in here))  # the controller was told
    disk.faults.read_only = True
    assert await write(first, "t", here[0]) == ErrorCode.KAFKA_STORAGE_ERROR
    await until(lambda: all(state[index].leader in (2, 3) for index in here))
    assert all(state[index].leader == 1 for index in range(4) if index not in here)
    for index in range(4):
        leader = nodes[state[index].leader]
        await until(lambda leader=leader, index=index: leader.partitions.find("t", index).is_leader)
        assert await write(leader, "t", index) == 0
    described = await ask(first, DescribeLogDirsRequest(topics=None))
    codes = {result.log_dir: result.error_code for result in described.results}
    assert codes == {first.storage.directories[0].path: 0, BAD: ErrorCode.KAFKA_STORAGE_ERROR}
    assert await write(first, "t", here[0]) == ErrorCode.KAFKA_STORAGE_ERROR
