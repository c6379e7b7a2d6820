"""DeleteRecords: what is on disk and what is in memory stay the same, whoever else asks and whoever goes away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

import pytest
from tests.server.replicas import Pair, topic_id
from tests.server.talk import create, delete, eventually, produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla.log.files import checkpoint
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.ports.os_disk import OsDisk
from ottla.server.storage.directories import DataDirectory
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

PARTITION = TopicPartition("t", 0)
EARLIEST = -2


def deletion(offset: int) -> DeleteRecordsRequest:
    topic = DeleteRecordsRequest.Topic
    wanted = topic(name="t", partitions=[topic.Partition(partition_index=0, offset=offset)])
    return DeleteRecordsRequest(topics=[wanted], timeout_ms=60_000)


class Held(Executor):
    """Does its work when it is told to."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def work(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future, work in waiting:
            future.set_result(work())


@pytest.mark.parametrize("offsets", [(3, 2), (2, 3), (3, 3)])
def test_two_at_once(offsets: tuple[int, int]) -> None:
    async def test() -> None:
        pair = Pair()
        pair.create()
        side, executor = pair.leader, Held()
        side.produce(count=5)
        checkpoints = side.storage.checkpoints
        checkpoints._executor = executor
        partition = side.partitions.find(*PARTITION)
        log = side.log()

        async def delete(offset: int) -> None:
            await checkpoints.remember_log_starts({partition: offset})
            log.advance_log_start(offset)

        both = [asyncio.ensure_future(delete(offset)) for offset in offsets]
        await asyncio.sleep(0)
        executor.work()
        await asyncio.gather(*both)
        directory = side.directories[0]
        assert log.log_start_offset == 3
        assert checkpoint.read_offsets(directory.disk, checkpoint.LOG_STARTS) == {PARTITION: 3}
        log.log_start_offset = 1  # as if it had not been: nobody waits for anything any more
        assert checkpoints.collect(directory).offsets[checkpoint.LOG_STARTS] == {PARTITION: 1}
        await pair.close()

    asyncio.run(test())


def test_checkpoints_that_are_being_written_while_their_partition_is_made_anew() -> None:
    """A worker is about to write offsets of the old one, of which nothing was on disk before."""

    async def test() -> None:
        pair = Pair()
        pair.create()
        side = pair.leader
        side.produce(count=5)
        directory, checkpoints = side.directories[0], side.storage.checkpoints
        late = checkpoints.collect(directory)
        pair.apply(journal.RemoveTopicRecord(topic_id=topic_id("t")))
        pair.create()
        side.produce(count=1)
        assert late.write() is None
        assert PARTITION in checkpoint.read_offsets(directory.disk, checkpoint.RECOVERY_POINTS)
        assert directory.disk.exists(f"{PARTITION}/{checkpoint.BEGUN_ANEW}")
        await checkpoints.write(late)
        assert directory.disk.exists(f"{PARTITION}/{checkpoint.BEGUN_ANEW}"), "these were the other one's"
        await checkpoints.write(checkpoints.collect(directory))
        assert not directory.disk.exists(f"{PARTITION}/{checkpoint.BEGUN_ANEW}")
        await pair.close()

    asyncio.run(test())


# --- on a node whose disk takes its time


class Gate:
    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()
    honest = DataDirectory.write

    def write(self: DataDirectory, name: str, offsets: Any, number: int) -> None:
        if name == checkpoint.LOG_STARTS and offsets.get(PARTITION):
            made.reached.set()
            assert made.opened.wait(WAIT_S)
        honest(self, name, offsets, number)

    monkeypatch.setattr(DataDirectory, "write", write)
    yield made
    made.opened.set()


def filled(connection: RawConnection) -> None:
    create(connection, "t")
    for number in range(5):
        produce(connection, "t", [b"%d" % number])


def test_it_is_carried_out_although_the_client_has_gone(ottla_broker: EmbeddedBroker, gate: Gate) -> None:
    node, loop = ottla_broker.node, ottla_broker._thread.loop
    assert node is not None and loop is not None
    with RawConnection(ottla_broker.bootstrap) as connection:
        filled(connection)
        connection.send(request_frame(deletion(3), 2, 7, "raw"))
        assert gate.reached.wait(WAIT_S)
        for served in tuple(node.connections.connections):
            loop.call_soon_threadsafe(served.close)
        eventually(lambda: not node.connections.connections, "the node has noticed")
    gate.opened.set()
    log = node.partitions.find("t", 0).log
    eventually(lambda: log.log_start_offset == 3, "memory says the same as the disk")
    assert checkpoint.read_offsets(node.storage.directories[0].disk, checkpoint.LOG_STARTS) == {PARTITION: 3}


def test_a_topic_that_is_made_anew_meanwhile_keeps_its_records(ottla_broker: EmbeddedBroker, gate: Gate) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection, RawConnection(ottla_broker.bootstrap) as other:
        filled(connection)
        connection.send(request_frame(deletion(3), 2, 7, "raw"))
        assert gate.reached.wait(WAIT_S)
        delete(other, "t")
        filled(other)
        gate.opened.set()
        told: Any = connection.decode(DeleteRecordsRequest.key, 2, connection.receive(), 7)
        assert told.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node = ottla_broker.node
    assert node is not None
    assert node.partitions.find("t", 0).log.log_start_offset == 0
    # The old log start got to the disk after all: the next start, should there be a crash, does not believe it.
    after = DataDirectory(str(ottla_broker.data_dir), OsDisk(str(ottla_broker.data_dir)))
    assert after.log_starts == {PARTITION: 3}
    after.heed_note(PARTITION)
    assert not after.log_starts


def test_what_follows_on_the_connection_finds_them_deleted(ottla_broker: EmbeddedBroker, gate: Gate) -> None:
    topic = ListOffsetsRequest.Topic
    ask = topic.Partition(partition_index=0, timestamp=EARLIEST)
    look = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[topic(name="t", partitions=[ask])])
    with RawConnection(ottla_broker.bootstrap) as connection, RawConnection(ottla_broker.bootstrap) as other:
        filled(connection)
        connection.send(request_frame(deletion(3), 2, 7, "raw") + request_frame(look, 7, 8, "raw"))
        assert gate.reached.wait(WAIT_S)
        seen: Any = other.call(look, 7)
        assert seen.topics[0].partitions[0].offset == 0, "others are not held up, and nobody sees what may not last"
        gate.opened.set()
        told: Any = connection.decode(DeleteRecordsRequest.key, 2, connection.receive(), 7)
        assert told.topics[0].partitions[0].low_watermark == 3
        found: Any = connection.decode(ListOffsetsRequest.key, 7, connection.receive(), 8)
        assert found.topics[0].partitions[0].offset == 3
