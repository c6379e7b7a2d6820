"""A listener with several certificates shows the one for the name that a client asks for (SNI)."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.security.secured import Certificates
from tests.support.certificates import LOOPBACK, Identity
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla.client.errors import AuthenticationError
from ottla.client.security.context import entries_of
from ottla.client.security.key_entries import key_entries
from ottla.client.security.secret import Secret
from ottla.client.security.tls import Store, Tls
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
NAMES = {
    "inside": ("broker.inside.example", *LOOPBACK),
    "outside": ("broker.outside.example",),
    "many": ("*.many.example",),
}
# The name that a client sends → the certificate that it gets.
EXPECTED = {
    "broker.inside.example": "inside",
    "broker.outside.example": "outside",
    "BROKER.Outside.example": "outside",
    "b1.many.example": "many",
    "b1.b2.many.example": "inside",
    "many.example": "inside",
    "unknown.example": "inside",
    None: "inside",
}
Start = Callable[[str], EmbeddedBroker]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.make(tmp_path / "certificates")


@pytest.fixture
def identities(certificates: Certificates) -> dict[str, Identity]:
    return {name: certificates.authority.server(hosts) for name, hosts in NAMES.items()}


@pytest.fixture
def start(tmp_path: Path, certificates: Certificates) -> Iterator[Start]:
    """Start a node with this keystore."""
    started: list[EmbeddedBroker] = []

    def begin(keystore: str, **settings: str) -> EmbeddedBroker:
        path = tmp_path / "store.pem"
        path.write_text(keystore)
        own = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
        own |= certificates.node() | {"ssl.keystore.location": str(path)}
        own |= {name.replace("_", "."): value for name, value in settings.items()}
        started.append(EmbeddedBroker(tmp_path / "data", own).start())
        return started[-1]

    yield begin
    for broker in started:
        broker.stop()


def shown(broker: EmbeddedBroker, certificates: Certificates, name: str | None) -> int:
    """The serial number of the certificate that a client gets who sends this name, and trusts the authority."""
    context = ssl.create_default_context(cafile=str(certificates.trusted))
    context.check_hostname = False
    host, _, port = broker.bootstrap.rpartition(":")
    with (
        socket.create_connection((host, int(port)), WAIT_S) as raw,
        context.wrap_socket(raw, server_hostname=name) as connection,
    ):
        found = connection.getpeercert()
    assert found is not None
    return int(str(found["serialNumber"]), 16)


def test_each_name_gets_its_certificate(
    start: Start, certificates: Certificates, identities: dict[str, Identity]
) -> None:
    broker = start("".join(each.keystore_pem() for each in identities.values()))
    serials = {name: each.certificate.serial_number for name, each in identities.items()}
    found = {name: shown(broker, certificates, name) for name in EXPECTED}
    assert found == {name: serials[which] for name, which in EXPECTED.items()}
    with RawConnection(broker.bootstrap, tls=certificates.context) as connection:  # and it works
        assert connection.call(HELLO, 3).error_code == 0


def test_certificates_may_be_in_any_order_and_replaced(
    start: Start, certificates: Certificates, identities: dict[str, Identity]
) -> None:
    """All certificates, and the authority once, then all keys, as `openssl pkcs12 -nodes` writes them."""
    inside, outside, many = identities.values()
    leaves = [many.certificate_pem, outside.certificate_pem, inside.certificate_pem, certificates.authority.pem]
    broker = start("".join([*leaves, *(each.key_pem() for each in identities.values())]))
    assert shown(broker, certificates, None) == inside.certificate.serial_number
    assert shown(broker, certificates, "broker.outside.example") == outside.certificate.serial_number
    renewed = certificates.authority.server(NAMES["outside"])
    (certificates.directory.parent / "store.pem").write_text(inside.keystore_pem() + renewed.keystore_pem())
    assert broker.node is not None and broker._thread.loop is not None
    asyncio.run_coroutine_threadsafe(broker.node.rooms.security.refresh(), broker._thread.loop).result(WAIT_S)
    assert shown(broker, certificates, "broker.outside.example") == renewed.certificate.serial_number
    assert shown(broker, certificates, "b1.many.example") == inside.certificate.serial_number


def test_clients_are_checked_whatever_they_name(
    start: Callable[..., EmbeddedBroker], certificates: Certificates, identities: dict[str, Identity]
) -> None:
    keystore = "".join(each.keystore_pem() for each in identities.values())
    broker = start(keystore, ssl_client_auth="required")
    bare = ssl.create_default_context(cafile=str(certificates.trusted))
    host, _, port = broker.bootstrap.rpartition(":")
    for name in ("broker.inside.example", "broker.outside.example"):
        for context, is_served in ((certificates.context, True), (bare, False)):
            with socket.create_connection((host, int(port)), WAIT_S) as raw:
                outcome = served(raw, context, name)
            assert outcome == is_served, (name, is_served)


def served(raw: socket.socket, context: ssl.SSLContext, name: str) -> bool:
    """Whether the server keeps a connection; with TLS 1.3 it refuses a client after the client's handshake."""
    try:
        with context.wrap_socket(raw, server_hostname=name) as connection:
            connection.settimeout(WAIT_S)
            connection.sendall(b"\0\0\0\1\0")  # a frame that is none: the node closes the connection
            return connection.recv(1) == b""
    except ssl.SSLError:
        return False


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the program openssl")
@pytest.mark.parametrize("name", ["broker.outside.example", "unknown.example", None])
def test_openssl(start: Start, certificates: Certificates, identities: dict[str, Identity], name: str | None) -> None:
    broker = start("".join(each.keystore_pem() for each in identities.values()))
    words = ["-noservername"] if name is None else ["-servername", name, "-verify_hostname", NAMES[EXPECTED[name]][0]]
    done = subprocess.run(
        ["openssl", "s_client", "-connect", broker.bootstrap, "-CAfile", certificates.trusted, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
    )
    assert "Verify return code: 0 (ok)" in done.stdout, done.stdout + done.stderr
    shown_pem = done.stdout.partition("-----BEGIN CERTIFICATE-----")[2].partition("-----END")[0]
    assert shown_pem.strip() in identities[EXPECTED[name]].certificate_pem


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python tells of the name, and goes on
def test_a_name_that_is_no_text_is_refused_and_others_are_served(
    start: Start, certificates: Certificates, identities: dict[str, Identity]
) -> None:
    """The name is in the first message, in plain text, so a hostile client can write anything there."""
    broker = start("".join(each.keystore_pem() for each in identities.values()))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(certificates.trusted))
    client = context.wrap_bio(incoming, outgoing, server_hostname="broker.outside.example")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    host, _, port = broker.bootstrap.rpartition(":")
    for name in (b"\xff" * 6, b"broker" + b"\xc3\xa9"):
        assert hello.count(b"broker") == 1
        with socket.create_connection((host, int(port)), WAIT_S) as raw:
            raw.sendall(hello.replace(b"broker", name[-6:]))
            answer = raw.recv(65_536)
        assert answer[:1] == b"\x15", "a TLS alert"
    assert shown(broker, certificates, None) == identities["inside"].certificate.serial_number


def test_a_key_needs_a_certificate_and_a_password(certificates: Certificates, identities: dict[str, Identity]) -> None:
    inside, outside, _ = identities.values()

    def problem(pem: str, password: str = "") -> str:
        tls = Tls(key_password=Secret(password) if password else None)
        with pytest.raises(AuthenticationError) as refused:
            entries_of(Store("ssl.keystore.location", pem=Secret(pem)), tls)
        return str(refused.value)

    assert "there is no certificate of private key 2" in problem(inside.keystore_pem() + outside.key_pem())
    locked = inside.keystore_pem() + outside.keystore_pem("secret")
    assert "private key 2 is encrypted, and ssl.key.password is not set" in problem(locked)
    assert "private key 2 is encrypted, and ssl.key.password is wrong" in problem(locked, "guess")
    first, second = key_entries(locked, "secret")
    assert (first.names[0], second.names) == (NAMES["inside"][0], NAMES["outside"])
    assert "PRIVATE" not in repr(first)
    assert certificates.authority.pem in second.pem, "the chain is complete"
