"""What a node says at start about listeners that are open, and about certificates whose time is over."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.server.security.secured import Certificates

from ottla.client.security.context import stamp_of
from ottla.client.security.tls import Tls
from ottla.client.security.values import SettingValues
from ottla.model import limits
from ottla.server.security.certificate_watch import CertificateWatch
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.certificates import issue, make_authority

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
Said = Callable[..., list[str]]


@pytest.fixture
def said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Said:
    """Start a node with one listener; the warnings of its security."""

    def start(protocol: str, host: str, **settings: str) -> list[str]:
        caplog.clear()
        chosen = Certificates.make(tmp_path / "certificates").node() if "SSL" in protocol else {}
        chosen |= {"listeners": f"{protocol}://{host}:0", "security.inter.broker.protocol": protocol}
        chosen["advertised.listeners"] = f"{protocol}://127.0.0.1:9"
        chosen["sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
        with caplog.at_level(logging.WARNING), EmbeddedBroker(tmp_path / f"{protocol}-{host}", chosen | settings):
            pass
        found = [each for each in caplog.records if each.name.startswith("ottla.server.security")]
        assert all(each.levelno == logging.WARNING for each in found)
        return [each.getMessage() for each in found]

    return start


def test_a_node_whose_own_user_nobody_knows(said: Said) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    own = {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f'{module} required username="me" password="secret";',
    }
    (line,) = said("SASL_SSL", "127.0.0.1", **own)
    assert line.startswith("this node logs in to brokers with SCRAM-SHA-512 as me, whom the cluster does not know")
    assert "--add-scram @FILE" in line and "SCRAM-SHA-512=[name=me,password=...]" in line and "secret" not in line


def test_settings_of_a_listener_that_does_not_exist(said: Said) -> None:
    own = {
        "listener.name.oauht.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauht.ssl.client.auth": "none",
        "listener.name.controller.ssl.client.auth": "none",
        "controller.listener.names": "CONTROLLER",
        "listener.name.ssl.ssl.client.auth": "none",
    }
    (line,) = said("SSL", "127.0.0.1", **own)
    assert line.startswith("settings begin with listener.name.oauht., but no listener has this name") and "ssl)" in line


def test_certificates_besides_passwords_are_asked_for_by_the_name_of_the_listener(said: Said) -> None:
    (line,) = said("SASL_SSL", "127.0.0.1", **{"ssl.client.auth": "required"})
    assert line.startswith(
        "ssl.client.auth is for listeners with the protocol SSL only, as in Kafka: listener SASL_SSL"
    )
    assert line.endswith("set listener.name.sasl_ssl.ssl.client.auth")
    assert said("SASL_SSL", "127.0.0.1", **{"listener.name.sasl_ssl.ssl.client.auth": "required"}) == []


def test_open_to_other_machines(said: Said) -> None:
    (line,) = said("PLAINTEXT", "0.0.0.0")
    assert line.startswith("listener PLAINTEXT (PLAINTEXT) at 0.0.0.0:0 does not authenticate, and is open to other")
    assert "may read, write and delete everything" in line and "Use SASL_SSL, or SSL with ssl.client.auth" in line
    assert "`ottla up --secure --data DIR`" in line and "set listeners=PLAINTEXT://127.0.0.1:0 (or --listen" in line
    (line,) = said("SSL", "0.0.0.0")  # encrypted, but for everybody
    assert "listener SSL (SSL) at 0.0.0.0:0 does not authenticate" in line
    assert said("SSL", "0.0.0.0", **{"ssl.client.auth": "required"}) == []


@pytest.mark.parametrize(("protocol", "host"), [("PLAINTEXT", "127.0.0.1"), ("PLAINTEXT", "localhost"), ("SSL", "::1")])
def test_loopback_is_fine(said: Said, protocol: str, host: str) -> None:
    assert said(protocol, f"[{host}]" if ":" in host else host) == []


def test_an_authorizer_that_one_can_go_around(said: Said) -> None:
    (line,) = said("PLAINTEXT", "127.0.0.1", **AUTHORIZER)
    assert "does not authenticate, but authorizer.class.name is set" in line and "User:ANONYMOUS" in line
    assert "Take it out of listeners, or use SASL_SSL" in line
    (line,) = said("PLAINTEXT", "0.0.0.0", **AUTHORIZER)
    assert "open to other machines: whoever reaches it is User:ANONYMOUS" in line


START = datetime(2026, 5, 1, tzinfo=UTC)


def test_certificates_are_looked_at_daily(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    authority = make_authority("ca", START)
    path = tmp_path / "node.pem"

    def write(days: int) -> Tls:
        path.write_text(issue(authority, "node", ["h"], START, valid_for=timedelta(days=days)).text)
        return Tls.of(SettingValues({"ssl.keystore.location": str(path), "ssl.keystore.type": "PEM"}))

    def told(after: timedelta) -> list[tuple[int, str]]:
        caplog.clear()
        watch.look(tls, stamp_of(tls), int((START + after).timestamp() * 1000))
        return [(each.levelno, each.getMessage()) for each in caplog.records]

    day = timedelta(milliseconds=limits.CERTIFICATE_LOOK_MS)
    tls, watch = write(40), CertificateWatch("SSL")
    assert told(timedelta()) == [], "the authority's certificate and the node's own are valid for long enough"
    assert told(11 * day) == [
        (
            logging.WARNING,
            "listener SSL: the certificate CN=node expires in 29 days, at 2026-06-10 00:00 UTC; write a new one to "
            f"{path}, without a restart",
        )
    ]
    assert told(11 * day + timedelta(hours=23)) == [], "once a day"
    ((level, line),) = told(12 * day)
    assert level == logging.WARNING and "expires in 28 days" in line
    ((level, line),) = told(41 * day)
    assert level == logging.ERROR and "CN=node has expired at 2026-06-10 00:00 UTC" in line
    tls = write(100)  # a new file is looked at, at once
    assert told(41 * day) == []
    tls = write(42)
    ((_, line),) = told(41 * day)
    assert "expires in 1 days" in line


def test_an_expired_certificate_is_told_at_start(said: Said, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificates = Certificates.make(tmp_path / "expired")
    store = certificates.authority.server(expired=True).write(tmp_path / "expired", "node")
    with pytest.raises(AssertionError):  # the level is ERROR
        said("SSL", "127.0.0.1", **{"ssl.keystore.location": str(store)})
    assert any("has expired at" in each.getMessage() for each in caplog.records if each.levelno == logging.ERROR)


def test_a_key_of_tokens_that_can_be_guessed(said: Said) -> None:
    (line,) = said("PLAINTEXT", "127.0.0.1", **{"delegation.token.secret.key": "short"})
    assert line.startswith("delegation.token.secret.key has 5 characters") and "short" not in line.partition(" ")[2]
    assert said("PLAINTEXT", "127.0.0.1", **{"delegation.token.secret.key": "x" * 32}) == []
