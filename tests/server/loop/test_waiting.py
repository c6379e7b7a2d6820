"""Answers that wait, on a live node: woken by what they wait for, gone with their connection, never in the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.talk import FETCH_VERSION, Pipeline, create, eventually, fetch_request, produce, values_of
from tests.support.requests.raw import RawConnection

from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.model.errors import ErrorCode
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

LONG_MS = 600_000


@pytest.fixture
def connection(ottla_broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(ottla_broker.bootstrap) as connection:
        yield connection


def waiting(broker: EmbeddedBroker) -> int:
    assert broker.node is not None
    return broker.node.storage.waiters.count


def test_a_closed_connection_leaves_no_waiter_behind(ottla_broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t")
    for _ in range(3):
        with Pipeline(ottla_broker.bootstrap) as pipe:
            pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
            pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
            eventually(lambda: waiting(ottla_broker) == 1, "one waits, the other behind it")
        eventually(lambda: waiting(ottla_broker) == 0, "the waiters are gone")


def test_pipelined_requests_are_answered_in_order(ottla_broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t")
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        for _ in range(100):
            pipe.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
        pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        eventually(lambda: waiting(ottla_broker) >= 1, "the fetch waits")
        assert produce(connection, "t", [b"one"]) == (0, 0)
        assert values_of(pipe.answer()) == {("t", 0): [b"one"]}
        for _ in range(100):
            assert pipe.answer().error_code == 0
        assert values_of(pipe.answer()) == {("t", 0): [b"one"]}


def test_a_producer_does_not_suffer_from_a_reader_that_fails(
    ottla_broker: EmbeddedBroker, connection: RawConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connection, "t")
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        eventually(lambda: waiting(ottla_broker) == 1, "the fetch waits")
        monkeypatch.setattr(Log, "read", _broken)
        assert produce(connection, "t", [b"one"]) == (0, 0)
        (topic,) = pipe.answer().responses
        assert topic.partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert waiting(ottla_broker) == 0


def _broken(*_: Any, **__: Any) -> Any:
    raise StorageError(5, "the disk cannot be read")


def test_a_bug_in_an_attempt_costs_its_own_connection_only(
    ottla_broker: EmbeddedBroker, connection: RawConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connection, "t")
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        eventually(lambda: waiting(ottla_broker) == 1, "the fetch waits")

        def bug(*_: Any, **__: Any) -> Any:
            raise RuntimeError("a bug")

        monkeypatch.setattr(Log, "read", bug)
        assert produce(connection, "t", [b"one"]) == (0, 0)
        assert pipe.connection._socket.recv(1) == b"", "closed"
    assert waiting(ottla_broker) == 0


def test_many_waiters_of_one_partition_are_all_woken(ottla_broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t")
    found: list[Any] = []

    def wait() -> None:
        with RawConnection(ottla_broker.bootstrap) as own:
            found.append(values_of(own.call(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)))

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: waiting(ottla_broker) == 8, "all wait")
    assert produce(connection, "t", [b"one"]) == (0, 0)
    for thread in threads:
        thread.join(20)
    assert found == [{("t", 0): [b"one"]}] * 8


def test_waiting_for_many_partitions_costs_one_look_per_append(
    ottla_broker: EmbeddedBroker, connection: RawConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connection, "t", 50)
    looks: list[Log] = []
    read = Log.read
    monkeypatch.setattr(Log, "read", lambda log, *args, **options: looks.append(log) or read(log, *args, **options))
    with Pipeline(ottla_broker.bootstrap) as pipe:
        request = fetch_request({("t", index): 0 for index in range(50)}, max_wait_ms=LONG_MS, min_bytes=5_000)
        pipe.send(request, FETCH_VERSION)
        eventually(lambda: waiting(ottla_broker) == 1, "the fetch waits")
        assert len(looks) == 50
        for index in range(10):
            produce(connection, "t", [b"x" * 100], index=index)
        assert len(looks) == 60
        assert waiting(ottla_broker) == 1
        produce(connection, "t", [b"x" * 5_000], index=20)
        found = values_of(pipe.answer())
    assert {key: len(values) for key, values in found.items() if values} == dict.fromkeys(
        [*(("t", index) for index in range(10)), ("t", 20)], 1
    )
