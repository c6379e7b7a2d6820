"""Clients that flood a node: others wait for one of their turns, not for all of them.

One has many connections. The others are unknown, and send tiny records to a TLS listener.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from tests.server.security.secured import Certificates, plain_jaas
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of, without_collections
from tests.support.requests.raw import request_frame
from tests.support.requests.tls_records import HANDSHAKE, TlsRecords
from tests.support.waiting import WAIT_S, until

from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

VERSION = 12
CONNECTIONS = 16
TOGETHER = 300
# The CPU time of one turn of the loop, for which a short request waits. Each connection could use it up for itself.
TURN_MS = 15.0
# The same if none of them is new: their first turns would be one after the other, and take half a millisecond each.
FIRST_TURN_MS = 5.0
RECORDS = 30_000
Flood = Callable[[TlsRecords], Iterator[bytes]]


def test_many_connections_of_a_flood_have_their_turns_one_by_one(tmp_path: Path) -> None:
    frames = b"".join(request_frame(MetadataRequest(topics=None), VERSION, at, "flood") for at in range(TOGETHER))
    with MeasuredNode(tmp_path, {}) as node:
        connections = [node.connect() for _ in range(CONNECTIONS)]
        for connection in connections:
            connection.call(MetadataRequest(topics=None), VERSION)
        flooded, turns_ms = threading.Event(), TurnTimes(node)
        node.loop.call_soon_threadsafe(flooded.wait, WAIT_S)  # the node finds all requests at once
        for connection in connections:
            connection.send(frames)
        with without_collections():
            node.loop.call_soon_threadsafe(turns_ms.begin)
            flooded.set()
            for connection in connections:
                for _ in range(TOGETHER):
                    connection.receive()
                connection.close()
            found = node.call(turns_ms.end)
    # Nobody knows before the first turn that they are many.
    assert sorted(found)[-2] < TURN_MS, sorted(found)[-10:]


def test_connections_that_flood_now_and_then_have_their_turns_one_by_one(tmp_path: Path) -> None:
    """Between two floods each of them sends a single request: its last turn was short, and it has not changed."""
    hello = request_frame(ApiVersionsRequest(), 0, 0, "flood")
    frames = b"".join(request_frame(MetadataRequest(topics=None), VERSION, at, "flood") for at in range(TOGETHER))
    with MeasuredNode(tmp_path, {}) as node:
        connections = [node.connect() for _ in range(CONNECTIONS)]

        def flood() -> list[float]:
            """The turns of the node, which finds all requests at once."""
            for connection in connections:
                connection.send(hello)
                connection.receive()
            flooded, turns_ms = threading.Event(), TurnTimes(node)
            node.loop.call_soon_threadsafe(flooded.wait, WAIT_S)
            for connection in connections:
                connection.send(frames)
            node.loop.call_soon_threadsafe(turns_ms.begin)
            flooded.set()
            for connection in connections:
                for _ in range(TOGETHER):
                    connection.receive()
            return sorted(node.call(turns_ms.end))

        with without_collections():
            flood()
            found = [flood() for _ in range(3)]
        for connection in connections:
            connection.close()
    assert min(each[-1] for each in found) < FIRST_TURN_MS, [each[-5:] for each in found]


class TurnTimes:
    """The CPU time of each turn of a node's loop."""

    def __init__(self, node: MeasuredNode) -> None:
        self._loop = node.loop
        self._marks_s: list[float] | None = None

    def begin(self) -> None:
        self._marks_s = []
        self._mark()

    def _mark(self) -> None:
        if self._marks_s is not None:
            self._marks_s.append(time.thread_time())
            self._loop.call_soon(self._mark)

    def end(self) -> list[float]:
        marks_s, self._marks_s = self._marks_s, None
        assert marks_s is not None and len(marks_s) > 2
        return [(after - before) * 1000 for before, after in pairwise(marks_s)]


def bytes_of_a_frame(client: TlsRecords) -> Iterator[bytes]:
    """One byte in each record."""
    for byte in struct.pack(">i", RECORDS) + bytes(RECORDS):
        yield client.record(bytes([byte]))


def tiny_frames(client: TlsRecords) -> Iterator[bytes]:
    """A frame that is too short for a request would end the connection, so each is an ApiVersions request."""
    frame = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    for _ in range(RECORDS // 4):
        yield client.record(frame)


def empty_records(client: TlsRecords) -> Iterator[bytes]:
    """As many as OpenSSL allows between two that have a byte."""
    yield from (client.record(bytes([byte])) for byte in struct.pack(">i", RECORDS))
    for number in range(RECORDS):
        yield client.record(b"" if number % 30 else b"\0")


def key_updates(client: TlsRecords) -> Iterator[bytes]:
    for _ in range(RECORDS // 2):
        yield client.key_update()


def renegotiations(client: TlsRecords) -> Iterator[bytes]:
    """The beginning of another handshake, which is refused."""
    for _ in range(RECORDS // 2):
        yield client.record(bytes([1, 0, 0, 0]), HANDSHAKE)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=["SSL", "SASL_SSL"])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[MeasuredNode]:
    settings = {
        "listeners": f"{request.param}://127.0.0.1:0",
        "security.inter.broker.protocol": request.param,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain_jaas(),
    }
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings | certificates.node()) as node:
        yield node


@pytest.mark.parametrize(
    ("flood", "version"),
    [
        (bytes_of_a_frame, ssl.TLSVersion.TLSv1_3),
        (bytes_of_a_frame, ssl.TLSVersion.TLSv1_2),
        (tiny_frames, ssl.TLSVersion.TLSv1_3),
        (empty_records, ssl.TLSVersion.TLSv1_3),
        (key_updates, ssl.TLSVersion.TLSv1_3),
        (renegotiations, ssl.TLSVersion.TLSv1_2),
    ],
)
def test_a_flood_of_tiny_records_holds_up_nobody(
    node: MeasuredNode, certificates: Certificates, tmp_path: Path, flood: Flood, version: ssl.TLSVersion
) -> None:
    attempts = iter(range(10))

    def measure() -> Callback:
        context = certificates.context
        context.minimum_version = context.maximum_version = version
        if version == ssl.TLSVersion.TLSv1_2:
            context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
        client = TlsRecords(node.bootstrap, context, tmp_path / f"keys-{next(attempts)}")
        return node.cost(lambda: send(node, client, b"".join(flood(client))))

    worst = best_of(measure)
    assert worst.cpu_ms <= BUDGET_MS, worst


def send(node: MeasuredNode, client: TlsRecords, data: bytes) -> None:
    """Send a flood, much of which the node finds at once; return when it has closed the connection."""
    begun = threading.Event()
    node.loop.call_soon_threadsafe(begun.wait, WAIT_S)
    client.socket.setblocking(False)
    left = memoryview(data)
    with suppress(BlockingIOError):
        while left:
            left = left[client.socket.send(left) :]
    client.socket.settimeout(WAIT_S)
    taker = threading.Thread(target=take, args=(client.socket,))
    taker.start()
    begun.set()
    with suppress(OSError):  # the node may close the connection before its end
        client.socket.sendall(left)
        client.socket.shutdown(socket.SHUT_WR)
    taker.join(WAIT_S)
    client.close()
    until(lambda: node.call(lambda: not node.node.connections.connections))


def take(sock: socket.socket) -> None:
    """Take the answers until the node closes the connection."""
    with suppress(OSError):
        while sock.recv(1 << 16):
            pass
