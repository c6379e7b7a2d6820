"""`ottla tls`: certificates that Python's TLS accepts, files that nobody else can read, and what `show` tells."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.conftest import invoke

from ottla.security.certificate_facts import read_certificates
from ottla.security.distinguished_names import subject_of
from ottla.testing.certificates import PemPair, issue, make_authority


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    directory = tmp_path / "tls"
    assert invoke("tls", "init", str(directory)).code == 0
    return directory


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def listening(directory: Path, name: str, *, asks_for_client: bool = False) -> tuple[socket.socket, ssl.SSLContext]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / f"{name}.pem")
    if asks_for_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(directory / "ca.pem")
    return socket.create_server(("127.0.0.1", 0)), context


def test_servers_and_clients_believe_each_other(authority: Path) -> None:
    words = ("tls", "issue", "--dir", str(authority))
    assert invoke(*words, "server", "--host", "localhost", "--host", "127.0.0.1").code == 0
    assert invoke(*words, "alice", "--client").code == 0
    assert [mode(authority / name) for name in ("ca.key", "server.pem", "alice.pem")] == [0o600] * 3
    assert (mode(authority), mode(authority / "ca.pem")) == (0o700, 0o644)
    listener, context = listening(authority, "server", asks_for_client=True)
    subjects: list[bytes | None] = []

    def serve() -> None:
        accepted, _ = listener.accept()
        with context.wrap_socket(accepted, server_side=True) as secured:
            subjects.append(secured.getpeercert(binary_form=True))
            secured.sendall(b"x")

    serving = threading.Thread(target=serve)
    serving.start()
    client = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    client.load_cert_chain(authority / "alice.pem")
    with (
        closing(listener),
        socket.create_connection(listener.getsockname()) as plain,
        client.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        assert secured.recv(1) == b"x"
        serving.join()
    assert subjects[0] is not None
    assert subject_of(subjects[0]) == "CN=alice"


def test_nothing_is_overwritten_unless_asked_for(authority: Path) -> None:
    issue_words = ("tls", "issue", "n", "--host", "localhost", "--dir", str(authority))
    assert invoke(*issue_words).code == 0
    former = {path.name: path.read_bytes() for path in authority.iterdir()}
    assert set(former) == {"ca.pem", "ca.key", "n.pem"}
    for words in (("tls", "init", str(authority)), issue_words):
        told = invoke(*words)
        assert told.code == 1 and "not overwritten" in told.err
    assert {path.name: path.read_bytes() for path in authority.iterdir()} == former
    (authority / "n.pem").chmod(0o644)
    assert invoke(*issue_words, "--force").code == 0
    assert (authority / "n.pem").read_bytes() != former["n.pem"] and mode(authority / "n.pem") == 0o600
    again = invoke("tls", "init", str(authority), "--force")
    assert again.code == 0 and "do not trust certificates of the former one" in again.err
    assert (authority / "ca.key").read_bytes() != former["ca.key"]


def test_show(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("tls", "issue", "n", "--host", "localhost", "--host", "::1", "--client", "--days", "10")
    assert invoke(*words, "--dir", str(authority)).code == 0
    own, ca = invoke("tls", "show", str(authority / "n.pem"), "--json").json
    assert (own["subject"], own["issuer"], own["hosts"]) == ("CN=n", "CN=Ottla development CA", ["localhost", "::1"])
    assert (own["key"], own["for"], own["days_left"]) == ("EC secp256r1", "server,client", 9)
    assert own["problem"].startswith("expires in 9 days, at ")
    assert (ca["for"], ca["problem"], ca["days_left"]) == ("authority", None, 3649)
    assert "days left\t9" in invoke("tls", "show", str(authority / "n.pem")).lines
    # The same by the listener that shows it.
    listener, context = listening(authority, "n")

    def serve() -> None:
        accepted, _ = listener.accept()
        with context.wrap_socket(accepted, server_side=True) as secured:
            secured.recv(1)

    serving = threading.Thread(target=serve)
    serving.start()
    with closing(listener):
        assert invoke("tls", "show", f"127.0.0.1:{listener.getsockname()[1]}", "--json").json == [own]
        serving.join()


def test_show_at_a_plaintext_port(tmp_path: Path) -> None:
    def serve() -> None:
        accepted, _ = listener.accept()
        with accepted:
            accepted.recv(1_000)
            accepted.sendall(b"HTTP/1.0 400 What?\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        told = invoke("tls", "show", f"127.0.0.1:{listener.getsockname()[1]}")
        serving.join()
    assert told.code == 1 and "shows no certificate" in told.err and "plaintext port" in told.err


NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_a_certificate_does_not_outlive_its_authority() -> None:
    authority = make_authority("ca", NOW, timedelta(days=5))
    (facts, _) = read_certificates(issue(authority, "n", ["h"], NOW).text)
    assert facts.ends == NOW + timedelta(days=5)
    with pytest.raises(ValueError, match="authority's certificate has expired"):
        issue(authority, "n", ["h"], NOW + timedelta(days=6))


def test_problems_with_time() -> None:
    authority = make_authority("ca", NOW)
    (facts, _) = read_certificates(issue(authority, "n", ["h"], NOW, valid_for=timedelta(days=100)).text)
    assert facts.problem(NOW) is None
    assert facts.problem(NOW + timedelta(days=69)) is None
    assert facts.problem(NOW + timedelta(days=71)) == "expires in 29 days, at 2026-08-09 00:00 UTC"
    assert facts.problem(NOW + timedelta(days=100)) == "has expired at 2026-08-09 00:00 UTC"
    assert facts.problem(NOW - timedelta(days=1)) == "is not valid before 2026-04-30 23:00 UTC"
    assert facts.days_left(NOW + timedelta(days=102)) == -2


def test_the_subject_is_written_as_kafka_writes_it() -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    authority = make_authority("ca", NOW)
    made = issue(authority, "node-1", ["h"], NOW, unit="ottla-nodes")
    certificate = x509.load_pem_x509_certificate(made.certificates.encode())
    assert subject_of(certificate.public_bytes(Encoding.DER)) == "CN=node-1,OU=ottla-nodes"
    assert "PRIVATE" not in repr(made) and "PRIVATE" in made.text


@pytest.mark.parametrize(
    ("certificates", "key"),
    [("x", "x"), ("", ""), ("other", "own"), ("own", "cut")],
    ids=["text", "empty", "other", "cut"],
)
def test_authorities_that_cannot_be_used(certificates: str, key: str) -> None:
    own, other = make_authority("ca", NOW), make_authority("ca", NOW)
    texts = {"own": own.certificates, "other": other.certificates}
    keys = {"own": own.key, "cut": own.key[:60]}
    with pytest.raises(ValueError, match="the authority's"):
        issue(PemPair(texts.get(certificates, certificates), keys.get(key, key)), "n", ["h"], NOW)
