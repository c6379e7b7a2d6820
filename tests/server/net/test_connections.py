"""Connections on a live node: bounds on memory, on requests in flight, on how long and from where one may stay."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.talk import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Pipeline,
    create,
    eventually,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.model import limits
from ottla.server.net.connection import ServerConnection
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest

Factory = Callable[..., EmbeddedBroker]
LONG_MS = 600_000
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")


def is_closed(connection: RawConnection) -> bool:
    try:
        connection.receive()
    except Closed:
        return True
    return False


def door(broker: EmbeddedBroker) -> Any:
    assert broker.node is not None
    return broker.node.connections


def test_no_more_than_so_many_requests_are_in_flight(ottla_broker: EmbeddedBroker) -> None:
    most = limits.IN_FLIGHT_PER_CONNECTION_MAX
    assert ottla_broker.node is not None
    waiters = ottla_broker.node.storage.waiters
    with RawConnection(ottla_broker.bootstrap) as connection, Pipeline(ottla_broker.bootstrap) as pipe:
        create(connection, "t")
        (mine,) = [each for each in door(ottla_broker).connections if each.context.client_id != "raw"]
        pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        for _ in range(2 * most):
            pipe.send(HELLO, 3)
        eventually(lambda: len(mine._slots) == most, "the first ones wait")
        connection.call(HELLO, 3)  # a round trip later nothing more was taken
        assert len(mine._slots) == most and waiters.count == 1
        produce(connection, "t", [b"one"])
        assert values_of(pipe.answer()) == {("t", 0): [b"one"]}
        for _ in range(2 * most):
            assert pipe.answer().error_code == 0


def test_one_fetch_of_a_connection_waits_at_a_time(ottla_broker: EmbeddedBroker) -> None:
    """Those behind it could not be answered before it, and each would be tried with every append."""
    assert ottla_broker.node is not None
    waiters = ottla_broker.node.storage.waiters
    with RawConnection(ottla_broker.bootstrap) as connection, Pipeline(ottla_broker.bootstrap) as pipe:
        create(connection, "t")
        pipe.send(HELLO, 3)
        for _ in range(3):
            pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
            pipe.send(fetch_request({("t", 0): 1}, max_wait_ms=LONG_MS), FETCH_VERSION)
        assert pipe.answer().error_code == 0
        eventually(lambda: waiters.count == 1, "the first one waits")
        connection.call(HELLO, 3)
        assert waiters.count == 1
        produce(connection, "t", [b"one"])
        assert values_of(pipe.answer()) == {("t", 0): [b"one"]}
        eventually(lambda: waiters.count == 1, "the second one waits")
        produce(connection, "t", [b"two"])
        for values in ([b"two"], [b"one", b"two"], [b"two"], [b"one", b"two"], [b"two"]):
            assert values_of(pipe.answer()) == {("t", 0): values}


@pytest.mark.parametrize("behind", [False, True], ids=["ready", "behind a waiting answer"])
def test_a_reader_that_takes_nothing_holds_little_memory(ottla_broker: EmbeddedBroker, behind: bool) -> None:
    """Small requests with large answers, and nobody who reads them."""
    with RawConnection(ottla_broker.bootstrap) as connection, Pipeline(ottla_broker.bootstrap) as pipe:
        create(connection, "t")
        (mine,) = [each for each in door(ottla_broker).connections if each.context.client_id != "raw"]
        if behind:
            pipe.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        resource = DescribeConfigsRequest.Resource(resource_type=4, resource_name="1", configuration_keys=None)
        ask = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
        size_bytes = len(connection_answer(connection, ask, 4))
        count = 20 * limits.ANSWERS_HELD_BYTES_MAX // size_bytes
        assert count < 1_000, "all of them fit into one read"
        pipe.connection.send(b"".join(request_frame(ask, 4, 7, "pipe") for _ in range(count)))
        outbound = mine._outbound
        eventually(
            lambda: mine._sending.blocked or outbound.held_bytes > limits.ANSWERS_HELD_BYTES_MAX // 2, "it is stuck"
        )
        connection.call(HELLO, 3)
        assert outbound.held_bytes <= limits.ANSWERS_HELD_BYTES_MAX + size_bytes
        if behind:
            produce(connection, "t", [b"one"])
            assert values_of(pipe.answer()) == {("t", 0): [b"one"]}
        for _ in range(count):
            assert len(pipe.connection.receive()) == size_bytes
        eventually(lambda: outbound.held_bytes == 0, "everything is sent")


def connection_answer(connection: RawConnection, request: Any, version: int) -> bytes:
    connection.send(request_frame(request, version, 7, "raw"))
    return connection.receive()


def test_a_slow_reader_of_a_fetch_holds_no_memory(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection, Pipeline(ottla_broker.bootstrap) as pipe:
        create(connection, "t")
        for _ in range(30):
            produce(connection, "t", [b"x" * 900_000])
        (mine,) = [each for each in door(ottla_broker).connections if each.context.client_id != "raw"]
        for _ in range(4):
            pipe.send(fetch_request({("t", 0): 0}, partition_max_bytes=1 << 25), FETCH_VERSION)
        eventually(lambda: mine._sending.blocked, "it is stuck")
        assert mine._outbound.held_bytes < 10_000
        for _ in range(4):
            assert len(values_of(pipe.answer())["t", 0]) == 30


def test_busy_producers_share_a_small_memory(ottla_broker_factory: Factory) -> None:
    """More of them than there is memory for, each with a part of it: none is left out."""
    size_bytes = 500_000
    broker = ottla_broker_factory(
        **{"queued.max.request.bytes": 2 * size_bytes, "socket.request.max.bytes": 2 * size_bytes}
    )
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 8)
    stop = threading.Event()
    sent = [0] * 8

    def pump(index: int) -> None:
        with Pipeline(broker.bootstrap) as pipe:
            request = produce_request({("t", index): [b"x" * size_bytes]})
            for _ in range(3):
                pipe.send(request, PRODUCE_VERSION)
            while not stop.is_set():
                pipe.send(request, PRODUCE_VERSION)
                pipe.answer()
                sent[index] += 1

    threads = [threading.Thread(target=pump, args=(index,), daemon=True) for index in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: min(sent) >= 20, "everybody gets on")
    stop.set()
    for thread in threads:
        thread.join(20)
    eventually(lambda: not door(broker).connections, "all have gone")
    assert door(broker).memory.used_bytes == 0
    assert not door(broker).memory.waiting


def test_unfinished_giants_do_not_starve_the_others(
    ottla_broker_factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STALLED_FRAME_S", 1)
    budget = {"queued.max.request.bytes": limits.MIB, "socket.request.max.bytes": limits.MIB}
    broker = ottla_broker_factory(**budget)
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        giants = [RawConnection(broker.bootstrap) for _ in range(8)]
        for giant in giants:
            giant.send(struct.pack(">i", limits.MIB) + bytes(300_000))
        eventually(lambda: door(broker).memory.waiting, "memory is short")
        assert produce(connection, "t", [b"x" * 900_000]) == (0, 0), "it had to wait, and got its turn"
        for giant in giants:
            giant.close()


def test_a_frame_above_the_limit_is_refused_before_it_comes(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**{"socket.request.max.bytes": 1_000_000})
    with RawConnection(broker.bootstrap) as connection:
        connection.send(struct.pack(">i", 1_000_001))
        assert is_closed(connection)
    assert door(broker).memory.used_bytes == 0


def test_answers_before_a_bad_frame_still_arrive(ottla_broker: EmbeddedBroker) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe:
        bad = struct.pack(">ihhih", 10, 0, 9, 1, -1)
        pipe.connection.send(request_frame(HELLO, 3, 1, "x") + bad)
        pipe._sent.append((ApiVersionsRequest.key, 3, 1))
        assert pipe.answer().error_code == 0
        assert is_closed(pipe.connection)


# How long one may stay


def test_idle_connections_are_closed_but_not_those_that_wait_for_us(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**{"connections.max.idle.ms": 2_000})
    with (
        RawConnection(broker.bootstrap) as idle,
        Pipeline(broker.bootstrap) as waits,
        RawConnection(broker.bootstrap) as active,
    ):
        create(active, "t")
        waits.send(fetch_request({("t", 0): 0}, max_wait_ms=LONG_MS), FETCH_VERSION)
        idle.call(HELLO, 3)  # last, so that the one that waits has been quiet for longer
        until(lambda: active.call(HELLO, 3) and select.select([idle._socket], [], [], 0.1)[0])
        assert is_closed(idle)
        assert produce(active, "t", [b"one"]) == (0, 0)
        assert values_of(waits.answer()) == {("t", 0): [b"one"]}
        waits.send(HELLO, 3)
        assert waits.answer().error_code == 0, "the answer it waited for counts as activity"


def test_a_negative_idle_time_means_for_ever(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**{"connections.max.idle.ms": -1})
    with RawConnection(broker.bootstrap) as connection:
        connection.call(HELLO, 3)
        broker.clock.advance("1h")
        connection.call(HELLO, 3)


# How many may come


def test_so_many_connections_of_one_address(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**{"max.connections.per.ip": 2})
    first, second = RawConnection(broker.bootstrap), RawConnection(broker.bootstrap)
    first.call(HELLO, 3)
    second.call(HELLO, 3)
    with RawConnection(broker.bootstrap) as third:
        assert is_closed(third)
    first.close()

    def enters() -> bool:
        with RawConnection(broker.bootstrap) as again:
            try:
                again.call(HELLO, 3)
            except (Closed, OSError):
                return False
            return True

    eventually(enters, "there is room again")
    second.close()


def test_an_address_may_have_a_limit_of_its_own(ottla_broker_factory: Factory) -> None:
    settings = {"max.connections.per.ip": 0, "max.connections.per.ip.overrides": "127.0.0.1:1,10.0.0.1:7"}
    broker = ottla_broker_factory(**settings)
    with RawConnection(broker.bootstrap) as first, RawConnection(broker.bootstrap) as second:
        first.call(HELLO, 3)
        assert is_closed(second)


def test_when_the_node_is_full_newcomers_wait_at_the_door(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**{"max.connections": 2})
    first, second = RawConnection(broker.bootstrap), RawConnection(broker.bootstrap)
    first.call(HELLO, 3)
    second.call(HELLO, 3)
    with Pipeline(broker.bootstrap) as third:
        third.send(HELLO, 3)
        first.call(HELLO, 3)
        assert len(door(broker).connections) == 2
        second.close()
        assert third.answer().error_code == 0, "Kafka lets it wait, too"
    first.close()


def test_a_peer_that_resets_its_connection_is_noticed(ottla_broker: EmbeddedBroker) -> None:
    """Also when there is more to read before the reset than one read takes."""
    request = produce_request({("t", 0): [b"x" * 400_000]})
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t")
        for _ in range(4):
            pipe = Pipeline(ottla_broker.bootstrap)
            for _ in range(5):
                pipe.send(request, PRODUCE_VERSION)
            pipe.close()  # its answers are not read, so the kernel sends a reset
        eventually(lambda: len(door(ottla_broker).connections) == 1, "only the good one is left")


def test_the_address_is_not_leaked_by_connections_that_leave(ottla_broker: EmbeddedBroker) -> None:
    for _ in range(5):
        RawConnection(ottla_broker.bootstrap).close()
    host, port = ottla_broker.bootstrap.rsplit(":", 1)
    hard = socket.create_connection((host, int(port)))
    hard.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    hard.close()  # with a reset
    eventually(lambda: not door(ottla_broker).connections and not door(ottla_broker).per_address, "all have gone")


def test_a_flood_of_requests_leaves_the_others_their_turn(
    ottla_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them come with one read; between them others are served."""
    monkeypatch.setattr(limits, "REQUESTS_PER_TURN_MAX", 10)
    loop: Any = ottla_broker._thread.loop
    events: list[str] = []
    handle = ServerConnection._handle
    monkeypatch.setattr(ServerConnection, "_handle", lambda *args: events.append("request") or handle(*args))
    running = [True]

    def tick() -> None:
        events.append("tick")
        if running:
            loop.call_soon(tick)

    loop.call_soon_threadsafe(tick)
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.connection.send(b"".join(request_frame(HELLO, 3, number, "flood") for number in range(500)))
        for number in range(500):
            pipe.connection.decode(ApiVersionsRequest.key, 3, pipe.connection.receive(), number)
    running.clear()
    between = "".join("r" if event == "request" else " " for event in events).split()
    assert max(len(requests) for requests in between) == 10
