"""How many connections are accepted per second: of a node, a listener, an address."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.quotas.quota_records import set_quota
from tests.server.talk import BROKER, alter
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.model import limits
from ottla.model.node_config import NodeConfig
from ottla.security.quotas.limits_of_clients import Quotas
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.server.quotas.connection_rates import ConnectionRates
from ottla.server.settings.configs import SINGLE_NODE, Configs
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
RATE = "max.connection.creation.rate"
NAMES = ("CLIENTS", "INTERNAL")


class Clock:
    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def rates(clock: Clock, names: tuple[str, ...] = NAMES, **settings: str) -> ConnectionRates:
    values = {name.replace("_", "."): value for name, value in settings.items()}
    return ConnectionRates(NodeConfig({**SINGLE_NODE, **values}), names, "INTERNAL", clock)


def accepted(found: ConnectionRates, listener: str, count: int) -> int:
    """Accept so many connections at once; the last wait."""
    return max(found.accepted(listener) for _ in range(count))


def test_nothing_is_measured_without_a_limit() -> None:
    clock = Clock()
    found = rates(clock)
    assert not found.active
    found.configure(NodeConfig({**SINGLE_NODE, RATE: "5"}))
    assert found.active
    found.configure(NodeConfig(SINGLE_NODE))
    assert not found.active
    found.sorted({(("ip", None),): {"connection_creation_rate": 5.0}})()
    assert found.active
    found.sorted({(("user", "a"),): {"producer_byte_rate": 5.0}})()
    assert not found.active


def test_a_listener_waits_above_its_rate_and_no_longer_than_a_sample() -> None:
    clock = Clock()
    found = rates(clock, listener_name_clients_max_connection_creation_rate="2")
    assert accepted(found, "CLIENTS", 20) == 0  # ten seconds' worth
    assert found.accepted("CLIENTS") == 500  # one more than two per second
    assert accepted(found, "CLIENTS", 30) == 1000
    assert found.accepted("INTERNAL") == 0


def test_the_inter_broker_listener_does_not_wait_for_the_others() -> None:
    clock = Clock()
    found = rates(clock, max_connection_creation_rate="2")
    assert accepted(found, "CLIENTS", 30) == 1000
    assert found.accepted("INTERNAL") == 0
    alone = rates(clock, ("INTERNAL",), max_connection_creation_rate="2")
    assert accepted(alone, "INTERNAL", 30) == 1000


def test_refused_connections_of_an_address_do_not_count_for_its_listener() -> None:
    clock = Clock()
    found = rates(clock, ("CLIENTS",), max_connection_creation_rate="100")
    found.sorted({(("ip", "10.0.0.1"),): {"connection_creation_rate": 1.0}})()
    for _ in range(10):
        assert found.accepted("CLIENTS") == 0
        assert found.refused("CLIENTS", "10.0.0.1") == 0
    for _ in range(5_000):
        assert found.accepted("CLIENTS") == 0
        assert found.refused("CLIENTS", "10.0.0.1") == 1000
    assert found.refused("CLIENTS", "10.0.0.2") == 0
    clock.now_ms += 12_000
    assert found.refused("CLIENTS", "10.0.0.1") == 0


@given(st.lists(st.integers(0, 500), min_size=100, max_size=400))
def test_who_waits_as_told_accepts_no_more_than_the_rate(pauses_ms: list[int]) -> None:
    clock = Clock()
    found = rates(clock, ("CLIENTS",), max_connection_creation_rate="5")
    begun_ms = clock.now_ms
    for pause_ms in pauses_ms:
        clock.now_ms += pause_ms
        clock.now_ms += found.accepted("CLIENTS")
    spent_s = (clock.now_ms - begun_ms) / 1000
    assert len(pauses_ms) <= 5 * (spent_s + 22)  # and one window at the begin, and one that is forgotten


def test_connections_above_the_rate_wait_for_their_turn(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> None:
    broker = ottla_broker_factory(**{RATE: 1})
    opened = [RawConnection(broker.bootstrap) for _ in range(12)]
    for connection in opened[:10]:
        connection.call(HELLO, 3)
    opened[11].send(request_frame(HELLO, 3, 1, "raw"))
    broker.clock.advance("500ms")
    assert not opened[11].has_answer()
    broker.clock.advance("3s")
    opened.pop().receive()
    for connection in opened:
        connection.call(HELLO, 3)
        connection.close()


def test_a_connection_that_waits_is_let_in_although_the_listener_was_full_meanwhile(
    ottla_broker_factory: Callable[..., EmbeddedBroker],
) -> None:
    broker = ottla_broker_factory(**{RATE: 1, "max.connections": 10})
    first = [RawConnection(broker.bootstrap) for _ in range(10)]
    for connection in first:
        connection.call(HELLO, 3)
    then = [RawConnection(broker.bootstrap) for _ in range(4)]
    for connection in then:
        connection.send(request_frame(HELLO, 3, 1, "raw"))
    for connection in first:
        connection.close()  # so that there is room, and the listener is told to go on
    waiting = list(then)
    for _ in range(60):
        broker.clock.advance("500ms")
        waiting = [connection for connection in waiting if not connection.has_answer()]
    assert not waiting
    for connection in then:
        connection.receive()
        connection.close()


def test_a_rate_changes_while_the_node_runs(ottla_broker: EmbeddedBroker) -> None:
    assert ottla_broker.node is not None and ottla_broker.node.composed is not None
    found = ottla_broker.node.composed.rooms.connection_rates
    with RawConnection(ottla_broker.bootstrap) as client:
        alter(client, BROKER, "", max_connection_creation_rate=7)
        assert found.active
        change = "listener.name.plaintext.max.connection.creation.rate"
        alter(client, BROKER, "1", **{change.replace(".", "_"): 3})
        assert found._limits == {"PLAINTEXT": 3}


def test_connections_of_an_address_above_its_quota_are_closed_after_the_wait(ottla_broker: EmbeddedBroker) -> None:
    set_quota(ottla_broker, {"ip": "127.0.0.1"}, "connection_creation_rate", 1.0)
    let_in = [RawConnection(ottla_broker.bootstrap) for _ in range(10)]
    for connection in let_in:
        connection.call(HELLO, 3)
    refused = RawConnection(ottla_broker.bootstrap)
    assert ottla_broker.node is not None and ottla_broker.node.composed is not None
    (listener,) = ottla_broker.node.composed._listeners.values()
    assert listener._pacing is not None
    held = listener._pacing._refused
    until(lambda: len(held) == 1)
    ottla_broker.clock.advance("1s")
    with pytest.raises((Closed, OSError)):
        refused.call(HELLO, 3)
    assert not held
    for connection in (*let_in, refused):
        connection.close()


def test_only_so_many_refused_connections_are_kept_open(
    ottla_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REFUSED_CONNECTIONS_HELD_MAX", 2)
    set_quota(ottla_broker, {"ip": None}, "connection_creation_rate", 1.0)
    host, port = ottla_broker.bootstrap.split(":")
    opened = [socket.create_connection((host, int(port))) for _ in range(14)]
    assert ottla_broker.node is not None and ottla_broker.node.composed is not None
    (listener,) = ottla_broker.node.composed._listeners.values()
    assert listener._pacing is not None
    held = listener._pacing._refused
    until(lambda: len(held) == 2)
    opened[-1].settimeout(60)
    assert opened[-1].recv(1) == b""  # closed at once
    for sock in opened:
        sock.close()


def test_a_node_that_stops_closes_those_that_wait(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> None:
    broker = ottla_broker_factory(**{RATE: 1})
    opened = [RawConnection(broker.bootstrap) for _ in range(12)]
    for connection in opened[:10]:
        connection.call(HELLO, 3)
    broker.stop()
    for connection in opened:
        with pytest.raises((Closed, OSError)):
            connection.call(HELLO, 3)
        connection.close()


def test_very_many_quotas_are_applied_in_one_moment() -> None:
    """A worker sorts them, and nothing of them counts before the loop applies all."""
    quotas: Quotas = {(("ip", None),): {"connection_creation_rate": 5.0}, (("user", "a"),): {"producer_byte_rate": 5.0}}
    found, clients = rates(Clock()), ClientQuotas(cast(Any, None), Configs({}).broker)
    ready = [found.sorted(quotas), clients.sorted(quotas)]
    assert not found.active and not clients.active
    for apply in ready:
        apply()
    assert found.active and clients.active
