"""Java's clients on a listener whose sessions are short (`connections.max.reauth.ms`, KIP-368)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.security.secured import MODULES, PASSWORDS, plain_jaas
from tests.support.java.programs import JavaServer
from tests.support.logins import Logins

from ottla import Blocking
from ottla.testing.broker import EmbeddedBroker

SESSION_MS = "1500"
LOGIN_MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule"}


@pytest.mark.parametrize("mechanism", LOGIN_MODULES)
def test_java_works_on_over_several_sessions(
    java_clients_431: JavaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """One producer writes over several sessions, on connections that authenticate anew."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
        f"listener.name.sasl_plaintext.{mechanism.lower()}.connections.max.reauth.ms": SESSION_MS,
    }
    password = PASSWORDS["alice"]
    login = f'{MODULES}.{LOGIN_MODULES[mechanism]} required username="alice" password="{password}";'
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": login}
    plain = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": PASSWORDS["admin"],
    }
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        with Blocking(broker.bootstrap, security=plain) as ours:
            ours.admin.users.set_password("alice", password)
        logins = Logins(monkeypatch)
        request = {"bootstrap": broker.bootstrap, "config": own}
        java_clients_431.ask({**request, "verb": "txn_open", "producer": mechanism, "id": mechanism})
        sent = 0
        while logins.again < 4:
            java_clients_431.ask({**request, "verb": "txn_begin", "producer": mechanism})
            values = {"topic": "t", "partition": 0, "values": [str(sent)]}
            java_clients_431.ask({**request, "verb": "txn_send", "producer": mechanism, **values})
            java_clients_431.ask({**request, "verb": "txn_commit", "producer": mechanism})
            sent += 1
        java_clients_431.ask({**request, "verb": "txn_close", "producer": mechanism})
        assert logins.principals == {"User:alice"}
        assert logins.connections <= 3, "connections went on: the first, and one for each role of the broker"
