"""Real clients on a listener whose sessions are short (`connections.max.reauth.ms`, KIP-368). aiokafka is left out: it
does not authenticate again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compat.security.round_trips import client_of
from tests.server.security.secured import PASSWORDS, plain_jaas
from tests.support.clients.security import ClientSecurity
from tests.support.logins import Logins

from ottla import Blocking
from ottla.testing.broker import EmbeddedBroker

SESSION_MS = "1500"
MECHANISMS = ("PLAIN", "SCRAM-SHA-512")
NAMES = ("java-4.3.1", "java-3.9.2", "confluent-kafka", "franz-go", "kafkajs", "kafka-python")
CONNECTIONS_MAX = 3  # of a producer: the first one, and one for each role of the broker


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_producer_works_on_over_several_sessions(
    name: str, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """One producer commits transactions over several sessions, on connections that authenticate anew."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
        f"listener.name.sasl_plaintext.{mechanism.lower()}.connections.max.reauth.ms": SESSION_MS,
    }
    alice, admin = (
        ClientSecurity("SASL_PLAINTEXT", how, user, PASSWORDS[user])
        for how, user in ((mechanism, "alice"), ("PLAIN", "admin"))
    )
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        with Blocking(broker.bootstrap, security=admin.java()) as ours:
            ours.admin.users.set_password("alice", PASSWORDS["alice"])
            ours.admin.topics.create("t")
        logins = Logins(monkeypatch)
        producer = client_of(name, request, alice).transactional(broker.bootstrap, "id")
        sent = 0
        while logins.again < 4:
            producer.begin()
            producer.send("t", 0, [str(sent)])
            producer.commit()
            sent += 1
        producer.close()
        assert logins.principals == {"User:alice"}
        assert logins.connections <= CONNECTIONS_MAX
