"""Three real processes: records are on all of them, leaders that die are followed by others, who returns catches up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import BROKER, TOPIC, alter, delete, eventually, produce
from tests.support.processes.clusters import METADATA_VERSION, OttlaCluster
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S

from ottla.log.files.names import LOG
from ottla.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.topics.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest


class TwoDisks(OttlaCluster):
    """Each node has two data directories."""

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        settings = super().settings_of(id, directory)
        return settings | {"log.dirs": f"{settings['log.dirs']},{directory / 'more'}"}

    def directories(self, id: int) -> list[Path]:
        return [self.directory / f"node-{id}" / name for name in ("data", "more")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoDisks]:
    cluster = TwoDisks(
        tmp_path_factory.mktemp("cluster"),
        properties={"replica.lag.time.max.ms": "3000", "log.segment.delete.delay.ms": "500"},
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def create(cluster: TwoDisks, topic: str, brokers: list[int], partitions: int = 1) -> None:
    assignment = CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment
    wanted = CreateTopicsRequest.CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[assignment(partition_index=index, broker_ids=brokers) for index in range(partitions)],
        configs=[],
    )
    answer = cluster.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
    assert answer.topics[0].error_code == 0, answer.topics[0]


def described(cluster: TwoDisks, topic: str, index: int = 0) -> Any:
    request = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False)
    answer = cluster.ask(request, METADATA_VERSION)
    return next((each for each in answer.topics[0].partitions if each.partition_index == index), None)


def write(cluster: TwoDisks, topic: str, values: list[bytes], *, index: int = 0, within_s: float = WAIT_S) -> int:
    """To the leader, wherever it is; the first offset."""
    deadline = time.monotonic() + within_s
    found: Any = None
    while time.monotonic() < deadline:
        leader = cluster.leader_of(topic, index)
        if leader in cluster.running:
            try:
                with RawConnection(cluster.address(leader)) as connection:
                    found = produce(connection, topic, values, index=index)
                if found[0] == 0:
                    return int(found[1])
            except (OSError, Closed):
                pass
        time.sleep(0.02)
    raise AssertionError(f"nothing can be written to {topic}-{index}: {found}")


def on_disk(cluster: TwoDisks, id: int, topic: str, index: int = 0) -> bytes:
    """What a node has of a partition."""
    homes = [directory / f"{topic}-{index}" for directory in cluster.directories(id)]
    return b"".join(path.read_bytes() for home in homes if home.is_dir() for path in sorted(home.glob(f"*{LOG}")))


def names(cluster: TwoDisks, id: int, topic: str) -> list[str]:
    """The directories a node has for a topic."""
    return sorted(
        path.name
        for directory in cluster.directories(id)
        for path in directory.iterdir()
        if path.name.startswith(topic)
    )


def isr(cluster: TwoDisks, topic: str, index: int = 0) -> set[int]:
    found = described(cluster, topic, index)
    return set(found.isr_nodes) if found is not None else set()


def test_what_is_acknowledged_is_on_all_in_sync(cluster: TwoDisks) -> None:
    create(cluster, "all", [1, 2, 3], 3)
    for index in range(3):
        assert write(cluster, "all", [b"one", b"two"], index=index) == 0
        written = on_disk(cluster, 1, "all", index)
        assert b"two" in written
        assert on_disk(cluster, 2, "all", index) == on_disk(cluster, 3, "all", index) == written


def test_a_leader_that_is_killed_is_followed_by_another_and_catches_up_when_it_returns(cluster: TwoDisks) -> None:
    create(cluster, "failover", [3, 1, 2])
    write(cluster, "failover", [b"before"])
    cluster.kill(3)
    assert write(cluster, "failover", [b"after"]) == 1
    assert isr(cluster, "failover") == {1, 2}
    cluster.start_node(3)
    eventually(lambda: isr(cluster, "failover") == {1, 2, 3}, "it is in sync again")
    assert on_disk(cluster, 3, "failover") == on_disk(cluster, 1, "failover")
    assert b"after" in on_disk(cluster, 3, "failover")


def test_a_follower_that_hangs_leaves_the_isr_and_comes_back(cluster: TwoDisks) -> None:
    create(cluster, "hangs", [1, 2, 3])
    write(cluster, "hangs", [b"x"])
    cluster.pause(2)
    try:
        assert write(cluster, "hangs", [b"y"]) == 1  # acknowledged when the ISR is smaller
        eventually(lambda: isr(cluster, "hangs") == {1, 3}, "the one that is asked has heard of it")
    finally:
        cluster.resume(2)
    eventually(lambda: isr(cluster, "hangs") == {1, 2, 3}, "it is in sync again")
    assert on_disk(cluster, 2, "hangs") == on_disk(cluster, 1, "hangs")


def test_a_replica_moves_to_another_broker_and_leaves_nothing_behind(cluster: TwoDisks) -> None:
    create(cluster, "moves", [1, 2])
    write(cluster, "moves", [b"x" * 1000])
    wanted = AlterPartitionReassignmentsRequest.ReassignableTopic
    answer = cluster.ask(
        AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            topics=[
                wanted(name="moves", partitions=[wanted.ReassignablePartition(partition_index=0, replicas=[1, 3])])
            ],
        ),
        0,
    )
    assert answer.error_code == 0
    eventually(lambda: isr(cluster, "moves") == {1, 3}, "the other broker has it")
    assert on_disk(cluster, 3, "moves") == on_disk(cluster, 1, "moves")
    eventually(lambda: names(cluster, 2, "moves") == [], "the files are gone")
    write(cluster, "moves", [b"y"])


def test_a_topic_that_was_deleted_while_a_broker_was_away_goes_when_it_returns(cluster: TwoDisks) -> None:
    create(cluster, "brief", [1, 2, 3])
    write(cluster, "brief", [b"x"])
    cluster.stop_node(2)
    with RawConnection(cluster.address(1)) as connection:
        delete(connection, "brief")
    cluster.start_node(2)
    assert "brief-0" not in names(cluster, 2, "brief")
    eventually(lambda: names(cluster, 2, "brief") == [], "the stray files are gone")


def log_dirs(cluster: TwoDisks, id: int, topic: str) -> dict[str, bool]:
    """Directory → whether what it has of the topic is a future replica."""
    with RawConnection(cluster.address(id)) as connection:
        answer: Any = connection.call(DescribeLogDirsRequest(topics=None), 4)
    return {
        result.log_dir: each.is_future_key
        for result in answer.results
        for found in result.topics
        if found.name == topic
        for each in found.partitions
    }


def test_a_replica_moves_between_directories_at_the_speed_allowed(cluster: TwoDisks) -> None:
    create(cluster, "inside", [1, 2, 3])
    for _ in range(4):
        write(cluster, "inside", [b"x" * 500_000])
    (here,) = log_dirs(cluster, 1, "inside")
    there = next(str(each) for each in cluster.directories(1) if str(each) != here)
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    request = AlterReplicaLogDirsRequest(
        dirs=[directory(path=there, topics=[directory.AlterReplicaLogDirTopic(name="inside", partitions=[0])])]
    )
    with RawConnection(cluster.address(1)) as connection:
        alter(connection, BROKER, "1", replica_alter_log_dirs_io_max_bytes_per_second=100_000)
        answer: Any = connection.call(request, 2)
        assert answer.results[0].partitions[0].error_code == 0
        assert log_dirs(cluster, 1, "inside") == {here: False, there: True}
        write(cluster, "inside", [b"meanwhile"])
        time.sleep(0.5)
        assert log_dirs(cluster, 1, "inside") == {here: False, there: True}
        alter(connection, BROKER, "1", replica_alter_log_dirs_io_max_bytes_per_second=1_000_000_000)
    eventually(lambda: log_dirs(cluster, 1, "inside") == {there: False}, "it is in the other directory")
    write(cluster, "inside", [b"later"])
    assert on_disk(cluster, 1, "inside") == on_disk(cluster, 2, "inside")


def test_a_returning_replica_is_throttled_by_its_leader(cluster: TwoDisks) -> None:
    create(cluster, "slowly", [1, 2, 3])
    create(cluster, "quickly", [1, 2, 3])
    cluster.stop_node(3)
    for _ in range(6):
        write(cluster, "slowly", [b"x" * 400_000])
    write(cluster, "quickly", [b"x"])
    with RawConnection(cluster.address(1)) as connection:
        alter(connection, TOPIC, "slowly", leader_replication_throttled_replicas="*")
        alter(connection, BROKER, "", leader_replication_throttled_rate=50_000)
        cluster.start_node(3)
        eventually(lambda: 3 in isr(cluster, "quickly"), "what is not throttled is in sync")
        assert 3 not in isr(cluster, "slowly")
        alter(connection, BROKER, "", leader_replication_throttled_rate=1_000_000_000)
    eventually(lambda: 3 in isr(cluster, "slowly"), "without the throttle all is in sync")
