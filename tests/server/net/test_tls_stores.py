"""A listener with TLS from every kind of keystore, the cipher suites that it takes, and files that are replaced."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.security.secured import Certificates
from tests.support.certificates import Authority, Identity
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.server import composed_node
from ottla.server.security.certificate_changes import check_names, names_in
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
PASSWORD = "opensesame"
STORES = ("PEM file", "encrypted PEM file", "inline PEM", "encrypted inline PEM", "PKCS12")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.make(tmp_path / "certificates")


@pytest.fixture
def started() -> Iterator[list[EmbeddedBroker]]:
    brokers: list[EmbeddedBroker] = []
    yield brokers
    for broker in brokers:
        broker.stop()


def store_settings(kind: str, identity: Identity, directory: Path) -> dict[str, str]:
    """The settings of a keystore of this kind."""
    path = directory / "store"
    password = PASSWORD if "encrypted" in kind else None
    own = {"ssl.key.password": PASSWORD} if password else {}
    if kind == "PKCS12":
        path.write_bytes(identity.pkcs12(PASSWORD))
        return {"ssl.keystore.type": kind, "ssl.keystore.location": str(path), "ssl.keystore.password": PASSWORD}
    if "inline" in kind:
        texts = {
            "ssl.keystore.key": identity.key_pem(password),
            "ssl.keystore.certificate.chain": identity.chain_pem,
        }
        return own | texts | {"ssl.keystore.type": "PEM"}
    path.write_text(identity.keystore_pem(password))
    return own | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}


def start(started: list[EmbeddedBroker], certificates: Certificates, store: dict[str, str], **more: str) -> str:
    """The address of a node whose only listener has TLS, and trusts the authority of the test."""
    own = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.trusted)}
    settings = own | trusted | store | {name.replace("_", "."): value for name, value in more.items()}
    started.append(EmbeddedBroker(certificates.directory / "data", settings).start())
    return started[-1].bootstrap


def context(certificates: Certificates, client: str | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(certificates.trusted))
    if client is not None:
        made.load_cert_chain(certificates.authority.client(client).write(certificates.directory, client))
    return made


def serial(bootstrap: str, tls: ssl.SSLContext) -> int:
    with RawConnection(bootstrap, tls=tls) as connection:
        assert connection.call(HELLO, 3).error_code == 0
        return int(connection._socket.getpeercert()["serialNumber"], 16)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", STORES)
def test_every_kind_of_keystore(started: list[EmbeddedBroker], certificates: Certificates, kind: str) -> None:
    """With certificates of both sides. The password is in no log, which the next test looks after."""
    identity = certificates.authority.node()
    store = store_settings(kind, identity, certificates.directory)
    bootstrap = start(started, certificates, store, ssl_client_auth="required")
    assert serial(bootstrap, context(certificates, "alice")) == identity.certificate.serial_number
    with pytest.raises((Closed, ssl.SSLError, ConnectionError)):
        serial(bootstrap, context(certificates))


@pytest.mark.parametrize("kind", ["encrypted PEM file", "encrypted inline PEM", "PKCS12"])
def test_a_wrong_password(
    started: list[EmbeddedBroker], certificates: Certificates, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    store = store_settings(kind, certificates.authority.node(), certificates.directory)
    wrong = {name: "not-the-password" if name.endswith("password") else value for name, value in store.items()}
    with pytest.raises(Exception, match=r"wrong") as refused:
        start(started, certificates, wrong)
    assert "not-the-password" not in str(refused.value) + caplog.text


def test_cipher_suites_of_tls_12(started: list[EmbeddedBroker], certificates: Certificates) -> None:
    """The one that the listener has is agreed on; a client that has another one only does not get in."""
    store = store_settings("PEM file", certificates.authority.node(), certificates.directory)
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"  # as Java names it
    bootstrap = start(started, certificates, store, ssl_cipher_suites=suite)
    with RawConnection(bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0
        name, version, _ = connection._socket.cipher()  # type: ignore[attr-defined]
        assert (name, version) == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")
    other = context(certificates)
    other.maximum_version = ssl.TLSVersion.TLSv1_2
    other.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises((Closed, ssl.SSLError, ConnectionError)):
        serial(bootstrap, other)
    newer = context(certificates)
    newer.minimum_version = ssl.TLSVersion.TLSv1_3
    with pytest.raises((Closed, ssl.SSLError, ConnectionError)):
        serial(bootstrap, newer)


@pytest.mark.parametrize("kind", ["PEM file", "PKCS12"])
def test_a_file_that_is_replaced_is_noticed(
    started: list[EmbeddedBroker], certificates: Certificates, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the node itself, whom nobody tells."""
    monkeypatch.setattr(composed_node, "CERTIFICATES_MS", 50)
    first, second = certificates.authority.node(), certificates.authority.node()
    bootstrap = start(started, certificates, store_settings(kind, first, certificates.directory))
    tls = context(certificates)
    assert serial(bootstrap, tls) == first.certificate.serial_number
    store_settings(kind, second, certificates.directory)
    until(lambda: serial(bootstrap, tls), lambda number: number == second.certificate.serial_number)


def test_names_of_certificates() -> None:
    """New ones need the names of old ones; more are fine, and case does not matter."""
    authority = Authority()
    old = names_in(authority.node(["a", "10.0.0.1"], common_name="Node").chain_pem)
    more = names_in(authority.node(["a", "b", "10.0.0.1"], common_name="node").chain_pem)
    other = names_in(authority.node(["a", "10.0.0.1"], common_name="other").chain_pem)
    check_names([old], [more], other_subject=False, fewer_alternatives=False)
    for before, after, problem in (
        ([more], [old], "is not for b any more"),
        ([old], [other], "is of CN=other, and the present one of CN=Node"),
        ([old], [old, old], "has 2 keys, and the present one has 1"),
    ):
        with pytest.raises(ValueError, match=problem):
            check_names(before, after, other_subject=False, fewer_alternatives=False)
        check_names(before, after, other_subject=True, fewer_alternatives=True)
    assert names_in("nonsense") == ("", frozenset()), "a node starts with what OpenSSL can read"
