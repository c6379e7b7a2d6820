"""A closed connection is freed at once, without the garbage collector, which may have put it aside for ever."""

from __future__ import annotations

import gc
import struct
import weakref
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

import pytest
from tests.server.security.secured import Certificates, log_in, plain_jaas
from tests.server.talk import FETCH_VERSION, create, fetch_request, produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model import limits
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
LONG_MS = 600_000


class Place(NamedTuple):
    broker: EmbeddedBroker
    certificates: Certificates

    def connect(self, protocol: str) -> RawConnection:
        assert self.broker.node is not None
        host, port = self.broker.node.addresses[PROTOCOLS.index(protocol)]
        return RawConnection(f"{host}:{port}", tls=self.certificates.context if protocol.endswith("SSL") else None)

    @property
    def connections(self) -> list[Any]:
        assert self.broker.node is not None
        return list(self.broker.node.connections.connections)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("node")
    certificates = Certificates.make(directory / "certificates")
    settings = {
        "listeners": ",".join(f"{protocol}://127.0.0.1:0" for protocol in PROTOCOLS),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain_jaas(),
        "connection.failed.authentication.delay.ms": "100",
    }
    with EmbeddedBroker(directory / "data", settings | certificates.node()) as broker:
        made = Place(broker, certificates)
        with made.connect("PLAINTEXT") as connection:
            create(connection, "t")
            produce(connection, "t", [b"one"])
        until(lambda: not made.connections)
        yield made


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def ordinary(connection: RawConnection) -> None:
    assert connection.call(HELLO, 3)
    produce(connection, "t", [b"two"])
    connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    connection.call(fetch_request({("t", 0): 1 << 20}, max_wait_ms=1), FETCH_VERSION)
    resource = DescribeConfigsRequest.Resource(resource_type=4, resource_name="1", configuration_keys=None)
    connection.call(DescribeConfigsRequest(resources=[resource]), 4)


def waiting_fetch(connection: RawConnection) -> None:
    size = end_of_log(connection)
    connection.send(request_frame(fetch_request({("t", 0): size}, max_wait_ms=LONG_MS), FETCH_VERSION, 9, "raw"))
    connection.send(request_frame(HELLO, 3, 10, "raw"))  # its answer waits behind


def end_of_log(connection: RawConnection) -> int:
    found: Any = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    return int(found.responses[0].partitions[0].high_watermark)


def waiting_member(connection: RawConnection) -> None:
    protocol = JoinGroupRequest.Protocol(name="p", metadata=b"")
    for member in ("", ""):
        request = JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, member_id=member, protocol_type="consumer", protocols=[protocol]
        )
        connection.send(request_frame(request, 2, 9, "raw"))


def half_a_frame(connection: RawConnection) -> None:
    size_bytes = 5 * limits.RECEIVE_BUFFER_BYTES
    connection.send(struct.pack(">i", size_bytes) + b"\0" * (size_bytes - 1))


def nothing(connection: RawConnection) -> None:
    pass


def refused_login(connection: RawConnection) -> None:
    connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=b"\0nobody\0wrong"), 2)
    assert answer.error_code


def login_under_way(connection: RawConnection) -> None:
    """It keeps its turn while the answer is delayed."""
    connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    connection.send(request_frame(SaslAuthenticateRequest(auth_bytes=b"\0nobody\0wrong"), 2, 2, "raw"))


def last_active_s(view: weakref.ref[Any]) -> float:
    connection = view()
    return inf if connection is None else float(connection.last_active)


def check(place: Place, protocol: str, use: Callable[[RawConnection], None], *, logged_in: bool) -> None:
    with place.connect(protocol) as connection:
        if logged_in:
            log_in(connection)
        (view,) = until(lambda: [weakref.ref(each) for each in place.connections])
        last_s = last_active_s(view)
        use(connection)
        if use is not nothing:
            until(lambda: last_active_s(view) > last_s)
    until(lambda: not place.connections)
    until(lambda: view() is None, timeout_s=30)


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("use", [ordinary, waiting_fetch, waiting_member, half_a_frame, nothing])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_closed_connection_is_freed(place: Place, protocol: str, use: Callable[[RawConnection], None]) -> None:
    check(place, protocol, use, logged_in=protocol.startswith("SASL"))


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("use", [half_a_frame, refused_login, login_under_way, nothing])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_so_is_one_without_a_login(place: Place, protocol: str, use: Callable[[RawConnection], None]) -> None:
    check(place, protocol, use, logged_in=False)


def test_a_failure_to_stop_work_for_a_client_that_left_stops_nothing_else(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in what one request or one room left behind: the others are told, and the connection is not counted."""
    stopped: list[str] = []

    def fails() -> None:
        stopped.append("fails")
        raise RuntimeError("a bug of the test")

    with place.connect("PLAINTEXT") as connection:
        waiting_fetch(connection)
        (mine,) = until(lambda: [each for each in place.connections if len(each._slots) == 2])
        abandon = mine._slots[0].give_up
        mine._slots[0].give_up, mine._slots[1].give_up = fails, lambda: (stopped.append("fetch"), abandon())
        mine.context.when_closed["first"] = fails
        mine.context.when_closed["second"] = lambda: stopped.append("second")
        address = mine.context.connection.remote_address
    until(lambda: not place.connections)
    assert stopped == ["fails", "fetch", "fails", "second"]
    assert mine.closed and not mine.context.when_closed
    told = [each for each in caplog.records if each.getMessage() == f"work for {address} could not be stopped"]
    assert len(told) == 2 and all(each.exc_info for each in told)
