"""TlsSocket and TlsPipe: whose bytes are whose, in what pieces they come, and what an idle connection keeps."""

from __future__ import annotations

import ctypes
import gc
import random
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.server.security.secured import Certificates

from ottla.model import limits
from ottla.server.net.tls_pipe import TlsPipe
from ottla.server.net.tls_socket import TlsSocket

MEGABYTE = 1_000_000
CONNECTIONS = 20
# What both ends keep; it is some 54 KiB. With BIOs of its own the server's end alone would keep 150 KiB.
BYTES_PER_PAIR = 90 * 1024
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(Path(certificates.node()["ssl.keystore.location"]))
    return made


class Pair:
    """Both ends of a connection, each of which waits for nothing."""

    def __init__(self, server: ssl.SSLContext, trusting: ssl.SSLContext, pipe: TlsPipe) -> None:
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
        self.server = TlsSocket(ours, server, time.monotonic, pipe)
        self.client = trusting.wrap_socket(theirs, server_hostname="127.0.0.1", do_handshake_on_connect=False)

    def shake_hands(self) -> Iterator[None]:
        """Each yield is a step of the handshake."""
        awaited = "reader"
        while awaited:
            with suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            yield
            awaited = self.server.step()
            yield

    def read_at_client(self) -> bytes:
        got = bytearray()
        with suppress(ssl.SSLWantReadError):
            while piece := self.client.recv(1 << 16):
                got += piece
        return bytes(got)

    def send_from_server(self, data: bytes) -> bytes:
        """Return what the client reads."""
        got, is_sent = bytearray(), False
        while not is_sent or len(got) < len(data):
            with suppress(BlockingIOError):
                is_sent = is_sent or self.server.send(data) == len(data)
            got += self.read_at_client()
        return bytes(got)

    def read_at_server(self, room: Callable[[], int]) -> bytes:
        """Read as a connection does: if the socket is readable, or the last read has left something."""
        got = bytearray()
        while self.server.has_more or select.select([self.server.fileno()], [], [], 0)[0]:
            buffer = bytearray(room())
            with suppress(BlockingIOError):
                got += buffer[: self.server.recv_into(memoryview(buffer))]
        return bytes(got)

    def close(self) -> None:
        self.server.close()
        self.client.close()


NewPair = Callable[..., Pair]


@pytest.fixture(scope="module")
def trusting(certificates: Certificates) -> dict[ssl.TLSVersion, ssl.SSLContext]:
    made = {each: ssl.create_default_context(cafile=str(certificates.trusted)) for each in VERSIONS}
    for version, context in made.items():
        context.minimum_version = context.maximum_version = version
    return made


@pytest.fixture
def pair(server: ssl.SSLContext, trusting: dict[ssl.TLSVersion, ssl.SSLContext]) -> Iterator[NewPair]:
    made: list[Pair] = []
    pipe = TlsPipe()

    def new(version: ssl.TLSVersion = VERSIONS[1], *, shakes: bool = True) -> Pair:
        made.append(Pair(server, trusting[version], pipe))
        if shakes:
            list(made[-1].shake_hands())
        return made[-1]

    yield new
    for each in made:
        each.close()


def a_lot() -> int:
    return 1 << 16


@pytest.mark.parametrize("version", VERSIONS)
def test_records_may_be_cut_anywhere(pair: NewPair, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion) -> None:
    monkeypatch.setattr(limits, "TLS_RECEIVE_BYTES", 300)
    rng = random.Random(7)
    one = pair(version)
    for size_bytes in (1, 16_384, 3 * 16_384 + 1, 60_000):
        data = rng.randbytes(size_bytes)
        for begin in range(0, size_bytes, 20_000):
            one.client.sendall(data[begin : begin + 20_000])
        assert one.read_at_server(lambda: rng.choice((1, 7, 400, 5_000, 40_000))) == data
    assert one.server.held_bytes == 0


def test_interleaved_clients_get_their_own_bytes(pair: NewPair) -> None:
    """From the first step of their handshakes on, some of which do not end."""
    new = [pair(VERSIONS[number % 2], shakes=False) for number in range(12)]
    under_way = {number: each.shake_hands() for number, each in enumerate(new)}
    for step in range(20):
        if step == 3:
            for lost in (0, 5, 7):
                del under_way[lost]
                new[lost].close()
        for number, handshake in list(under_way.items()):
            if next(handshake, "done") == "done":
                del under_way[number]
    assert not under_way
    left = [each for number, each in enumerate(new) if number not in (0, 5, 7)]
    rng = random.Random(8)
    for _ in range(3):
        sent = [rng.randbytes(100_000) for _ in left]
        got = [b"" for _ in left]
        for begin in range(0, 100_000, 10_000):
            for each, data in zip(left, sent, strict=True):
                each.client.sendall(data[begin : begin + 10_000])
            for at, each in enumerate(left):
                got[at] += each.read_at_server(lambda: rng.choice((500, 70_000)))
        assert got == sent
        assert [each.send_from_server(data) for each, data in zip(left, sent, strict=True)] == sent


def test_a_client_that_does_not_read_does_not_disturb_another(pair: NewPair) -> None:
    one, other = pair(), pair()
    data = random.Random(9).randbytes(3 * MEGABYTE)
    with pytest.raises(BlockingIOError):
        one.server.send(data)
    assert 0 < one.server.held_bytes <= limits.TLS_ENCRYPT_BYTES + 1024
    assert other.send_from_server(data) == data
    assert one.send_from_server(data) == data


def test_what_a_failed_operation_left_is_not_given_to_another_client(pair: NewPair) -> None:
    one, other = pair(), pair()
    pipe = one.server._pipe
    assert pipe is other.server._pipe
    pipe.outgoing.write(b"of one client")
    pipe.incoming.write(b"of one client")
    other.client.sendall(b"request")
    assert other.read_at_server(a_lot) == b"request"
    assert other.send_from_server(b"answer") == b"answer"


def test_farewells_and_sudden_ends_are_the_end(pair: NewPair) -> None:
    polite, sudden = pair(), pair()
    for each in (polite, sudden):
        each.client.sendall(b"last words")
    with suppress(ssl.SSLError):
        polite.client.unwrap()
    sudden.read_at_client()  # the tickets; with bytes unread it would be a reset
    sudden.client.close()
    for each in (polite, sudden):
        buffer = memoryview(bytearray(100))
        assert each.server.recv_into(buffer) == len(b"last words")
        assert each.server.recv_into(buffer) == 0


def test_what_is_no_tls_is_the_end(pair: NewPair) -> None:
    for nonsense in (b"\x17\x03\x03\xff\xff" + bytes(100), b"\x17\x03\x03\x00\x20" + bytes(32)):
        one = pair()
        raw = one.client.detach()
        with socket.socket(fileno=raw) as client:
            client.sendall(nonsense)
            assert one.server.recv_into(memoryview(bytearray(100))) == 0


class Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated_bytes() -> int:
    """What the C libraries of this process have allocated and not freed."""
    find = ctypes.CDLL(None).mallinfo2
    find.restype = Mallinfo2
    gc.collect()
    found = find()
    return int(found.uordblks + found.hblkhd)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library does not tell")
def test_an_idle_connection_keeps_no_memory_of_its_traffic(pair: NewPair) -> None:
    data = bytes(MEGABYTE)

    def use() -> Pair:
        made = pair()
        made.client.sendall(data[:32_000])
        assert made.read_at_server(a_lot) == data[:32_000]
        assert made.send_from_server(data) == data
        return made

    used = [use()]  # what all of them share is there now
    before = allocated_bytes()
    used += [use() for _ in range(CONNECTIONS)]
    grown = allocated_bytes() - before
    assert grown / CONNECTIONS < BYTES_PER_PAIR
    assert sum(each.server.held_bytes for each in used) == 0
