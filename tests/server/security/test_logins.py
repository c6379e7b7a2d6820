"""Logins: each is counted by listener and mechanism, and in the audit log with the name that was claimed."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.server.security.audit.test_audit_log import security, settings
from tests.server.security.secured import Certificates, plain_jaas
from tests.support.certificates import Authority
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.server import composed_node
from ottla.server.security.logins import Logins, printable
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
FAILED = 58  # SASL_AUTHENTICATION_FAILED


def counts(broker: EmbeddedBroker) -> dict[tuple[str, str], tuple[int, int]]:
    """Successes and failures."""
    assert broker.node is not None
    return {key: (each.successes, each.failures) for key, each in broker.node.rooms.security.logins.counts.items()}


def authentications(path: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [each for each in events if each["action"] == "AUTHENTICATE"]


def fail(broker: EmbeddedBroker, mechanism: str, message: bytes) -> None:
    with RawConnection(broker.bootstrap) as client:
        client.call(SaslHandshakeRequest(mechanism=mechanism), 1)
        answer: Any = client.call(SaslAuthenticateRequest(auth_bytes=message), 1)
        if mechanism.startswith("SCRAM"):
            nonce = bytes(answer.auth_bytes).partition(b",")[0]
            answer = client.call(SaslAuthenticateRequest(auth_bytes=b"c=biws," + nonce + b",p=c2VjcmV0"), 1)
        assert answer.error_code == FAILED


def test_sasl_failures_name_the_claimed_user(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    chosen = settings(to="file", file=str(path)) | {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "connection.failed.authentication.delay.ms": "1",
    }
    with EmbeddedBroker(tmp_path / "data", chosen) as broker:
        with Blocking(broker.bootstrap, security=security("admin")) as client:
            client.admin.topics.names()
        with Blocking(broker.bootstrap, security=security("alice", "wrong")) as client, pytest.raises(ClientError):
            client.admin.topics.names()
        tried = counts(broker)["SASL_PLAINTEXT", "PLAIN"][1]
        assert tried >= 1
        fail(broker, "PLAIN", b"\0mal\n\x1blory" + b"y" * 1_000 + b"\0hunter2")
        fail(broker, "PLAIN", b"hunter2")
        fail(broker, "SCRAM-SHA-512", b"n,,n=bob,r=nonce")
        with RawConnection(broker.bootstrap) as client:
            client.call(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        found = counts(broker)
    assert found["SASL_PLAINTEXT", "PLAIN"][0] >= 1 and found["SASL_PLAINTEXT", "PLAIN"][1] == tried + 2
    assert found["SASL_PLAINTEXT", "SCRAM-SHA-512"] == (0, 1)
    assert found["SASL_PLAINTEXT", "NONE"] == (0, 1)
    events = authentications(path)
    refused = {(each["mechanism"], each.get("claimed", "")) for each in events if each["outcome"] == "refused"}
    long = "mal??lory" + "y" * (limits.CLAIMED_CHARACTERS_MAX - 9) + "…"
    assert refused == {
        ("PLAIN", "alice"), ("PLAIN", long), ("PLAIN", ""), ("SCRAM-SHA-512", "bob"), ("NONE", ""),
    }  # fmt: skip
    assert all(each["principal"] == "" and each["reason"] for each in events if each["outcome"] == "refused")
    assert "hunter2" not in path.read_text() and "wrong" not in path.read_text().replace("is wrong", "")


def test_certificates_are_in_the_audit_log(tmp_path: Path) -> None:
    path, certificates = tmp_path / "audit.log", Certificates.make(tmp_path / "certificates")
    chosen = certificates.node() | {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        "ottla.audit.to": "file",
        "ottla.audit.file": str(path),
    }

    def context(authority: Authority | None) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(certificates.trusted))
        if authority is not None:
            made.load_cert_chain(authority.client("alice").write(certificates.directory, "shown"))
        return made

    with EmbeddedBroker(tmp_path / "data", chosen) as broker:
        with RawConnection(broker.bootstrap, tls=context(certificates.authority)) as connection:
            connection.call(HELLO, 3)
        for refused in (None, Authority("another")):
            with (
                pytest.raises((Closed, ssl.SSLError)),
                RawConnection(broker.bootstrap, tls=context(refused)) as connection,
            ):
                connection.call(HELLO, 3)
        RawConnection(broker.bootstrap).close()  # a health check is no attempt to log in
        until(lambda: counts(broker), lambda found: found.get(("SSL", "TLS")) == (1, 2))
    allowed, *others = authentications(path)
    assert (allowed["principal"], allowed["mechanism"], allowed["outcome"]) == ("User:CN=alice", "TLS", "allowed")
    assert {(each["host"], each["principal"], each["outcome"]) for each in others} == {("127.0.0.1", "", "refused")}
    reasons = " ".join(each["reason"] for each in others)
    assert "certificate" in reasons and len(others) == 2


def test_counts_without_an_audit_log() -> None:
    logins = Logins(None)
    logins.failed("L", "PLAIN", "h", "x", "y")
    logins.succeeded("L", "PLAIN", "h", "User:x")
    (count,) = logins.counts.values()
    assert (count.successes, count.failures) == (1, 1)


def test_operators_are_told_how_many_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(composed_node, "FAILED_LOGINS_MS", 50)
    chosen = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
        "connection.failed.authentication.delay.ms": "1",
    }

    def told() -> list[str]:
        return [each.getMessage() for each in caplog.records if "did not prove who they are" in each.getMessage()]

    with EmbeddedBroker(tmp_path / "data", chosen) as broker:
        fail(broker, "PLAIN", b"\0alice\0hunter2")
        (line,) = until(told, lambda lines: len(lines) == 1)
        assert line.endswith(": 1 with PLAIN on listener SASL_PLAINTEXT (1 since the start)")
        fail(broker, "PLAIN", b"\0alice\0hunter2")
        _, line = until(told, lambda lines: len(lines) == 2)
        assert line.endswith(": 1 with PLAIN on listener SASL_PLAINTEXT (2 since the start)")
    assert "hunter2" not in caplog.text and "alice" not in " ".join(told())


def test_one_line_whatever_failed(caplog: pytest.LogCaptureFixture) -> None:
    logins = Logins(None)
    logins.tell_failures()
    for number in range(1_000):
        logins.failed("B", "PLAIN", f"host {number}", f"user {number}", "reason")
    logins.failed("A", "", "h", "x", "y")
    logins.succeeded("B", "TLS", "h", "User:x")
    logins.tell_failures()
    logins.tell_failures()
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.endswith(
        ": 1 with NONE on listener A (1 since the start), 1000 with PLAIN on listener B (1000 since the start)"
    )


@pytest.mark.parametrize(("text", "shown"), [("bob", "bob"), ("a\nb\0", "a?b?"), ("é", "é"), ("\u202e", "?")])
def test_claimed_names_are_printable(text: str, shown: str) -> None:
    assert printable(text) == shown
