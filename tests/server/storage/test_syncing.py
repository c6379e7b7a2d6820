"""fsync before the acknowledgement: shared by many appends, waited for, and what happens when it fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.server.talk import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    TOPIC,
    Pipeline,
    alter,
    create,
    delete,
    eventually,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.support.requests.raw import RawConnection

from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.model.errors import ErrorCode
from ottla.server.ports.os_disk import OsFile
from ottla.testing.broker import EmbeddedBroker

Factory = Callable[..., EmbeddedBroker]


class Syncs:
    """Counts the syncs of partition t-0's records; can hold them up and make them fail."""

    def __init__(self) -> None:
        self.began = 0
        self.failures = 0
        self.open = threading.Event()
        self.open.set()
        self._sync = OsFile.sync

    def __call__(self, file: OsFile) -> None:
        if file.path.startswith("t-0") and file.path.endswith(".log"):
            self.began += 1
            assert self.open.wait(30)
            if self.failures:
                self.failures -= 1
                raise StorageError(5, "no")
        self._sync(file)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Syncs]:
    found = Syncs()
    monkeypatch.setattr(OsFile, "sync", lambda file: found(file))
    yield found
    found.open.set()


@pytest.fixture
def connection(ottla_broker: EmbeddedBroker, syncs: Syncs) -> Iterator[RawConnection]:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", ottla_fsync_before_ack="true")
        yield connection


def next_offset(broker: EmbeddedBroker) -> int:
    """Of a partition that was written to: only the broker's own thread may open one."""
    assert broker.node is not None
    partition = broker.node.partitions.get("t", 0)
    assert partition is not None
    return partition.log.next_offset


def test_many_appends_share_one_sync(ottla_broker: EmbeddedBroker, connection: RawConnection, syncs: Syncs) -> None:
    assert produce(connection, "t", [b"first"]) == (0, 0)
    syncs.open.clear()
    with ExitStack() as stack:
        pipes = [stack.enter_context(Pipeline(ottla_broker.bootstrap)) for _ in range(10)]
        for pipe in pipes:
            for _ in range(20):
                pipe.send(produce_request({("t", 0): [b"x"]}), PRODUCE_VERSION)
        eventually(lambda: next_offset(ottla_broker) == 201, "all are appended while one sync is held up")
        held = syncs.began
        answer = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
        assert values_of(answer) == {("t", 0): [b"first"]}, "what is not on disk cannot be read"
        syncs.open.set()
        offsets = []
        for pipe in pipes:
            for _ in range(20):
                (found,) = pipe.answer().responses[0].partition_responses
                assert found.error_code == 0
                offsets.append(found.base_offset)
    assert sorted(offsets) == list(range(1, 201))
    assert held <= 2, "one before, and the one that was held up"
    assert syncs.began <= held + 1, "all that was appended while a sync was held up shares the next"
    assert len(values_of(connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION))["t", 0]) == 201


def test_a_reader_is_woken_by_the_sync_not_by_the_append(
    ottla_broker: EmbeddedBroker, connection: RawConnection, syncs: Syncs
) -> None:
    syncs.open.clear()
    with Pipeline(ottla_broker.bootstrap) as reader, Pipeline(ottla_broker.bootstrap) as writer:
        reader.send(fetch_request({("t", 0): 0}, max_wait_ms=600_000), FETCH_VERSION)
        writer.send(produce_request({("t", 0): [b"x"]}, acks=1), PRODUCE_VERSION)
        eventually(lambda: syncs.began >= 1, "a sync runs")
        syncs.open.set()
        assert values_of(reader.answer()) == {("t", 0): [b"x"]}
        assert writer.answer().responses[0].partition_responses[0].error_code == 0, "acks=1 waits for it, too"


def test_a_failed_sync_is_told_and_cut_off(
    ottla_broker: EmbeddedBroker, connection: RawConnection, syncs: Syncs
) -> None:
    assert produce(connection, "t", [b"good"]) == (0, 0)
    syncs.failures = 1
    assert produce(connection, "t", [b"lost"])[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(connection, "t", [b"better"]) == (0, 1)
    answer = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    assert values_of(answer) == {("t", 0): [b"good", b"better"]}


def test_a_sync_that_fails_with_its_clean_up_leaves_nothing_hanging(
    ottla_broker: EmbeddedBroker, connection: RawConnection, syncs: Syncs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise StorageError(5, "nor this")

    assert produce(connection, "t", [b"good"]) == (0, 0)
    syncs.failures = 1
    with monkeypatch.context() as patch:
        patch.setattr(Log, "truncate_to", broken)
        assert produce(connection, "t", [b"unknown"], timeout_ms=300)[0] == ErrorCode.KAFKA_STORAGE_ERROR
    with monkeypatch.context() as patch:
        patch.setattr(Log, "files_to_sync", broken)
        assert produce(connection, "t", [b"unknown"], timeout_ms=300)[0] == ErrorCode.KAFKA_STORAGE_ERROR
    error, offset = produce(connection, "t", [b"better"])
    assert error == 0
    assert values_of(connection.call(fetch_request({("t", 0): offset}), FETCH_VERSION)) == {("t", 0): [b"better"]}
    assert ottla_broker.node is not None
    assert not ottla_broker.node.storage.syncer._running


def test_a_topic_deleted_while_a_producer_waits_for_the_disk(
    ottla_broker: EmbeddedBroker, connection: RawConnection, syncs: Syncs
) -> None:
    syncs.open.clear()
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(produce_request({("t", 0): [b"x"]}, timeout_ms=600_000), PRODUCE_VERSION)
        eventually(lambda: syncs.began >= 1, "a sync runs")
        delete(connection, "t")
        found = pipe.answer().responses[0].partition_responses[0]
        assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    syncs.open.set()
    create(connection, "t", ottla_fsync_before_ack="true")
    assert produce(connection, "t", [b"new"]) == (0, 0)


def test_turning_it_off_lets_go_whoever_waits(
    ottla_broker: EmbeddedBroker, connection: RawConnection, syncs: Syncs
) -> None:
    syncs.open.clear()
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(produce_request({("t", 0): [b"x"]}, timeout_ms=600_000), PRODUCE_VERSION)
        eventually(lambda: syncs.began >= 1, "a sync runs")
        alter(connection, TOPIC, "t", ottla_fsync_before_ack="false")
        assert pipe.answer().responses[0].partition_responses[0].error_code == 0


def test_a_produce_that_waits_too_long_is_told(
    ottla_broker: EmbeddedBroker, connection: RawConnection, syncs: Syncs
) -> None:
    syncs.open.clear()
    assert produce(connection, "t", [b"x"], timeout_ms=100)[0] == ErrorCode.REQUEST_TIMED_OUT
    syncs.open.set()
    assert produce(connection, "t", [b"y"]) == (0, 1)


@pytest.mark.parametrize(("name", "value", "expected"), [("flush_messages", 5, 2), ("flush_ms", 1, 1)])
def test_kafkas_own_flush_settings(
    ottla_broker: EmbeddedBroker, syncs: Syncs, name: str, value: int, expected: int
) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", **{name: value})
        for _ in range(11):
            assert produce(connection, "t", [b"x"])[0] == 0
        eventually(lambda: syncs.began >= expected, "the log is flushed")


def test_nothing_is_synced_by_default(ottla_broker: EmbeddedBroker, syncs: Syncs) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t")
        for _ in range(50):
            assert produce(connection, "t", [b"x"])[0] == 0
    assert syncs.began == 0
