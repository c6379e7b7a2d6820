"""Moves between data directories: a real Kafka and Ottla, each with two of them, answer the same and do the same.

Neither can make the topic of its group coordinator, which nothing here needs: what they say to that is compared, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import BROKER, alter, create, eventually, produce
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection

from ottla.model.errors import ErrorCode
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.topics.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest

LONG = "x" * 245
TOO_MANY = {"offsets.topic.replication.factor": "3"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, list[str]]]]:
    """Kind → (bootstrap, directories)."""
    home = tmp_path_factory.mktemp("directories")
    paths = {kind: [str(home / kind / name) for name in ("one", "two")] for kind in ("kafka", "ottla")}
    kafka = RealKafka(home / "kafka", properties={"log.dirs": ",".join(paths["kafka"]), **TOO_MANY})
    port, controller = free_ports(2)
    properties = home / "ottla.properties"
    (home / "ottla").mkdir()
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "log.dirs": ",".join(paths["ottla"]),
        **TOO_MANY,
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    ottla = OttlaNode.on_file(properties, Path(paths["ottla"][0]), port)
    try:
        ottla.start()
        kafka.start()
        yield {"kafka": (kafka.bootstrap, paths["kafka"]), "ottla": (f"127.0.0.1:{port}", paths["ottla"])}
    finally:
        ottla.kill()
        kafka.stop()


def where(connection: RawConnection, topic: str, index: int = 0) -> dict[str, bool]:
    """Directory → whether what lies there of the partition is a future replica."""
    answer: Any = connection.call(DescribeLogDirsRequest(topics=None), 4)
    return {
        result.log_dir: each.is_future_key
        for result in answer.results
        for found in result.topics
        if found.name == topic
        for each in found.partitions
        if each.partition_index == index
    }


def cordoned(connection: RawConnection) -> dict[str, bool]:
    answer: Any = connection.call(DescribeLogDirsRequest(topics=None), 5)
    return {result.log_dir: result.is_cordoned for result in answer.results}


def move(connection: RawConnection, path: str, topics: dict[str, list[int]]) -> dict[tuple[str, int], int]:
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    wanted = [directory.AlterReplicaLogDirTopic(name=name, partitions=indexes) for name, indexes in topics.items()]
    answer: Any = connection.call(AlterReplicaLogDirsRequest(dirs=[directory(path=path, topics=wanted)]), 2)
    return {
        (result.topic_name, each.partition_index): each.error_code
        for result in answer.results
        for each in result.partitions
    }


def script(bootstrap: str, paths: list[str]) -> list[Any]:
    with RawConnection(bootstrap) as connection:
        create(connection, "t", 2)
        create(connection, LONG)
        eventually(lambda: produce(connection, "t", [b"one", b"two"]) == (0, 0))
        (here,) = [path for path, future in where(connection, "t").items() if not future]
        there = next(path for path in paths if path != here)
        found: list[Any] = [
            move(connection, "/nowhere", {"t": [0]}),
            move(connection, there, {"t": [7], "unknown": [0], LONG: [0]}),
            move(connection, here, {"t": [0]}),
            where(connection, "t") == {here: False},
            move(connection, there, {"t": [0]}),
        ]
        eventually(lambda: where(connection, "t") == {there: False}, "it moved")
        found.append(produce(connection, "t", [b"three"]))
        # The one that was refused begins where it was told.
        create(connection, "unknown")
        eventually(lambda: where(connection, "unknown") == {there: False}, "it was remembered")
        alter(connection, BROKER, "1", cordoned_log_dirs=here)
        eventually(lambda: cordoned(connection) == {here: True, there: False}, "the directory is cordoned")
        found.append(move(connection, here, {"t": [0]}))
        create(connection, "new", 4)
        eventually(lambda: len(where(connection, "new", 3)) == 1, "the new topic is there")
        found.append([where(connection, "new", index) == {there: False} for index in range(4)])
        return found


def test_moves_between_directories(pair: dict[str, tuple[str, list[str]]]) -> None:
    theirs = script(*pair["kafka"])
    assert script(*pair["ottla"]) == theirs


def test_a_coordinator_whose_topic_cannot_be_made(pair: dict[str, tuple[str, list[str]]]) -> None:
    answers = []
    for bootstrap, _ in pair.values():
        with RawConnection(bootstrap) as connection:
            many: Any = connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            one: Any = connection.call(FindCoordinatorRequest(key_type=0, key="g"), 3)
            assert one.error_message
            answers.append((many.coordinators, one.error_code, one.node_id))
    assert answers[0] == answers[1]
    assert answers[0][1] == ErrorCode.COORDINATOR_NOT_AVAILABLE
