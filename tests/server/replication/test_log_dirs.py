"""Replicas that move from one data directory of a broker to another."""

from __future__ import annotations

import asyncio
import errno
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.replicas import FOLLOWER, LEADER, Pair, Side, content, eventually, now_ms, place
from tests.server.replication.test_isr import settle

from ottla.cluster.entities import UNASSIGNED_DIRECTORY
from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.server.handlers.topics.alter_replica_log_dirs import alter_replica_log_dirs
from ottla.server.handlers.topics.describe_log_dirs import describe_log_dirs
from ottla.server.replication.log_dirs import LogDirs
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.messages.topics.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest

NAME = place("t")


def two_directories() -> Pair:
    return Pair(follower_disks=("one", "two"))


def other(pair: Pair) -> str:
    """The directory in which t-0 does not lie."""
    here = pair.follower.partitions.directory_of(NAME)
    assert here is not None
    return "two" if here.path == "one" else "one"


def move(pair: Pair, path: str, topic: str = "t") -> int:
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    request = AlterReplicaLogDirsRequest(
        dirs=[directory(path=path, topics=[directory.AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
    )
    context: Any = SimpleNamespace(replication=pair.follower.replication)
    (result,) = alter_replica_log_dirs(request, context).results
    return int(result.partitions[0].error_code)


def described(side: Side) -> dict[tuple[str, bool], tuple[int, int]]:
    """(directory, future?) → (size, lag) of t-0."""
    context: Any = SimpleNamespace(runtime=side.runtime, storage=side.storage, replication=side.replication)
    answer = describe_log_dirs(DescribeLogDirsRequest(topics=None), context)
    return {
        (result.log_dir, each.is_future_key): (each.partition_size, each.offset_lag)
        for result in answer.results
        for topic in result.topics
        for each in topic.partitions
    }


def agreeing(pair: Pair) -> None:
    pair.channel.answer = lambda request: settle(request, {})


def hesitating(pair: Pair) -> asyncio.Event:
    """The controller agrees when the event is set."""
    release = asyncio.Event()

    async def slowly(request: Any) -> Any:
        await release.wait()
        return settle(request, {})

    pair.channel.answer = slowly
    return release


def test_a_replica_moves_with_all_it_has_and_goes_on() -> None:
    async def test() -> None:
        pair = two_directories()
        agreeing(pair)
        pair.create()
        for _ in range(5):
            pair.leader.produce(count=3)
        await pair.same()
        target = other(pair)
        assert move(pair, target) == ErrorCode.NONE
        await eventually(lambda: other(pair) != target, "the replica is where it should be")
        await pair.same()
        pair.leader.produce()
        await pair.same()
        assert list(described(pair.follower)) == [(target, False)]
        left = pair.follower.disks[other(pair)].list("")
        assert [name.rpartition("-")[2] for name in left if name.startswith("t-0")] == ["delete"]
        ids = {directory.path: directory.id for directory in pair.follower.directories}
        assert pair.channel.asked[-1].directories[0].id == ids[target]
        assert move(pair, target) == ErrorCode.NONE  # it is there
        await pair.close()

    asyncio.run(test())


def test_a_replica_moves_to_and_fro_while_what_it_left_has_yet_to_be_removed() -> None:
    async def test() -> None:
        pair = two_directories()
        agreeing(pair)
        pair.create()
        pair.leader.produce()
        await pair.same()
        for _ in range(4):
            target = other(pair)
            assert move(pair, target) == ErrorCode.NONE
            await eventually(lambda there=target: other(pair) != there, "the replica is where it should be")
            pair.leader.produce()
            await pair.same()
        assert pair.follower.partitions.offline_directories() == []
        await pair.close()

    asyncio.run(test())


def test_a_move_is_seen_until_the_controller_agrees_and_can_be_taken_back() -> None:
    async def test() -> None:
        pair = two_directories()
        pair.create()
        pair.leader.produce(count=3)
        await pair.same()
        here, target = ("two", "one") if other(pair) == "one" else ("one", "two")
        assert move(pair, target) == ErrorCode.NONE
        size = pair.follower.log().size_bytes
        await eventually(lambda: described(pair.follower).get((target, True)) == (size, 0))
        assert described(pair.follower)[here, False] == (size, 0)
        pair.leader.produce(count=2)
        await pair.same()
        assert described(pair.follower)[target, True] == (size, 2)
        assert move(pair, here) == ErrorCode.NONE
        assert list(described(pair.follower)) == [(here, False)]
        await pair.close()

    asyncio.run(test())


def test_what_is_cut_off_meanwhile_is_cut_off_the_copy() -> None:
    async def test() -> None:
        pair = two_directories()
        agreeing(pair)
        pair.create()
        pair.leader.produce(count=3)
        await pair.same()
        await eventually(lambda: pair.channel.asked)
        pair.wire.cut()
        pair.elect(FOLLOWER)
        ours = pair.follower.partitions.find("t", 0)
        ours.append(build_batch([(None, b"nobody else has this")] * 5, timestamp=now_ms()), now_ms=now_ms())
        release = hesitating(pair)
        target = other(pair)
        assert move(pair, target) == ErrorCode.NONE
        await eventually(lambda: described(pair.follower).get((target, True), (0, -1))[1] == 0)
        pair.elect(LEADER)
        pair.leader.produce(count=2)
        pair.wire.is_cut = False
        await eventually(lambda: ours.log.next_offset == 5)
        release.set()
        await eventually(lambda: other(pair) != target)
        await pair.same()
        await pair.close()

    asyncio.run(test())


def test_a_cut_during_the_copying_is_followed() -> None:
    async def test() -> None:
        pair = two_directories()
        agreeing(pair)
        pair.create()
        for _ in range(4):
            pair.leader.produce(count=3)
        await pair.same()
        release = hesitating(pair)
        target = other(pair)
        assert move(pair, target) == ErrorCode.NONE
        await eventually(lambda: described(pair.follower).get((target, True), (0, -1))[1] == 0)
        ours = pair.follower.partitions.find("t", 0)
        ours.truncate_to(6)
        ours.high_watermark = 6
        in_one_go(pair.replication.reloading(pair.state))
        release.set()
        await eventually(lambda: other(pair) != target)
        assert content(ours.log)
        pair.leader.produce()
        await pair.same()
        await pair.close()

    asyncio.run(test())


async def stopped_while_moving(pair: Pair) -> str:
    """The follower stops with everything copied that there is; where to."""
    await pair.same()
    target = other(pair)
    assert move(pair, target) == ErrorCode.NONE
    await eventually(lambda: described(pair.follower).get((target, True), (0, -1))[1] == 0)
    await pair.replication.close()
    pair.follower.storage.close()
    return target


def test_a_restart_goes_on_with_a_move_and_finishes_the_last_step_of_one() -> None:
    async def test() -> None:
        pair = two_directories()
        pair.create()
        pair.leader.produce(count=3)
        target = await stopped_while_moving(pair)
        disks = pair.follower.disks
        again = Side(FOLLOWER, pair.state, disks, {})
        assert [name for directory in again.directories for name in directory.futures] == [NAME]
        again.storage.close()
        # A crash between the last two renames: only the future one is left under a name of its own.
        source = disks["two" if target == "one" else "one"]
        source.rename("t-0", "t-0.00-delete")
        last = Side(FOLLOWER, pair.state, disks, {})
        here = last.partitions.directory_of(NAME)
        assert here is not None
        assert here.path == target
        assert last.log().next_offset == 3

    asyncio.run(test())


def test_a_move_of_a_topic_that_is_gone_is_not_gone_on_with_by_its_namesake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have records of epoch 0 from offset 0 on: nothing but the topic's id tells them apart."""
    make = LogDirs._make

    async def test() -> None:
        pair = two_directories()
        turn = asyncio.Event()

        async def in_turn(self: LogDirs, move: Any) -> None:
            await turn.wait()  # behind other moves
            await make(self, move)

        pair.create()
        pair.leader.produce(count=3, value=b"of the old one")
        await stopped_while_moving(pair)
        old = pair.state.topics["t"]
        record = journal.PartitionRecord(
            **{"partition_id": 0, "topic_id": b"another".ljust(16, b"\1"), "leader": LEADER, "leader_epoch": 0},
            **{"replicas": [LEADER, FOLLOWER], "isr": [LEADER, FOLLOWER], "partition_epoch": 0},
            **{"removing_replicas": [], "adding_replicas": [], "directories": [UNASSIGNED_DIRECTORY] * 2},
        )
        anew = journal.TopicRecord(name="t", topic_id=record.topic_id)
        records = (journal.RemoveTopicRecord(topic_id=old.id), anew, record)
        pair.leader.changed([change for each in records for change in pair.state.apply(each)])
        for _ in range(4):
            pair.leader.produce(value=b"of the new one")
        agreeing(pair)
        pair.follower = Side(FOLLOWER, pair.state, pair.follower.disks, {"replica.fetch.wait.max.ms": "60000"})
        pair.follower.peers, pair.follower.member.link = pair.wire, pair.channel
        pair.replication = pair.follower.replicate()
        monkeypatch.setattr(LogDirs, "_make", in_turn)
        pair.replication.start(pair.state)
        await pair.same()
        turn.set()
        await eventually(lambda: NAME not in pair.follower.partitions.moving)
        await pair.same()
        await pair.close()

    asyncio.run(test())


def test_a_source_that_cannot_be_read_is_not_the_fault_of_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        pair = two_directories()
        agreeing(pair)
        pair.create()
        pair.leader.produce()
        await pair.same()
        source = pair.follower.partitions.find("t", 0).log
        honest = Log.read

        def read(log: Log, *where: Any, **how: Any) -> Any:
            if log is source:
                raise StorageError(errno.EIO, "unreadable")
            return honest(log, *where, **how)

        monkeypatch.setattr(Log, "read", read)
        target = other(pair)
        assert move(pair, target) == ErrorCode.NONE
        await eventually(lambda: any(each.failure for each in pair.follower.directories), "it is given up")
        failed = [each.path for each in pair.follower.directories if each.failure is not None]
        assert failed == [path for path in ("one", "two") if path != target]
        await pair.close()

    asyncio.run(test())


def test_what_cannot_be_moved() -> None:
    async def test() -> None:
        pair = two_directories()
        agreeing(pair)
        pair.create()
        assert move(pair, "three") == ErrorCode.LOG_DIR_NOT_FOUND
        assert move(pair, "two", "unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert move(pair, "two", "x" * 249) == ErrorCode.INVALID_TOPIC_EXCEPTION
        # Remembered: a replica that comes later begins there, however full the directory is.
        for name in ("later", "another"):
            assert move(pair, "two", name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            pair.create(name)
            place_of = pair.follower.partitions.directory_of(place(name))
            assert place_of is not None
            assert place_of.path == "two"
        pair.follower.disks["two"].faults.read_only = True
        assert move(pair, "two") == ErrorCode.KAFKA_STORAGE_ERROR
        await pair.close()

    asyncio.run(test())
