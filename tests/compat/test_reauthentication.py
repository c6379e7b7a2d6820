"""Real clients on a listener whose sessions are short (`connections.max.reauth.ms`, KIP-368). aiokafka is left out: it
does not authenticate again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compat.security.round_trips import client_of, set_system_properties
from tests.server.security.gssapi_settings import listener
from tests.server.security.secured import PASSWORDS, Certificates, SaslListeners, plain_jaas
from tests.support import tools
from tests.support.clients.kerberos import HOST, SERVICE, with_keytab
from tests.support.clients.members import GroupClient
from tests.support.clients.oauth import OAuthSecurity
from tests.support.clients.security import ClientSecurity
from tests.support.java.programs import JavaServer
from tests.support.logins import Logins
from tests.support.processes.kdc import REALM, Kdc
from tests.support.processes.oidc import OidcProvider, bearer_listener

from ottla import Blocking
from ottla.testing.broker import EmbeddedBroker

SESSION_MS = "1500"
MECHANISMS = ("PLAIN", "SCRAM-SHA-512")
WAYS = (*((mechanism, "SASL_PLAINTEXT") for mechanism in MECHANISMS), ("SCRAM-SHA-512", "SASL_SSL"))
NAMES = ("java-4.3.1", "java-3.9.2", "confluent-kafka", "franz-go", "kafkajs", "kafka-python")
CONNECTIONS_MAX = 3  # of a producer: the first one, and one for each role of the broker


@pytest.mark.parametrize(("mechanism", "protocol"), WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_a_producer_works_on_over_several_sessions(
    name: str,
    mechanism: str,
    protocol: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
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
    sasl = SaslListeners(protocol, Certificates.make(tmp_path / "certificates"))
    authority = str(sasl.certificates.trusted) if protocol == "SASL_SSL" else ""
    alice, admin = (
        ClientSecurity(protocol, how, user, PASSWORDS[user], authority)
        for how, user in ((mechanism, "alice"), ("PLAIN", "admin"))
    )
    with EmbeddedBroker(tmp_path / "data", sasl.settings(settings)) as broker:
        with Blocking(broker.bootstrap, security=admin.java()) as ours:
            ours.admin.users.set_password("alice", PASSWORDS["alice"])
            ours.admin.topics.create("t")
        logins = Logins(monkeypatch)
        work_over_sessions(client_of(name, request, alice), broker.bootstrap, logins)
    assert logins.principals == {"User:alice"}


def work_over_sessions(client: GroupClient, bootstrap: str, logins: Logins) -> None:
    """Commit transactions with one producer until a connection has had four further sessions."""
    producer = client.transactional(bootstrap, "id")
    sent = 0
    while logins.again < 4:
        producer.begin()
        producer.send("t", 0, [str(sent)])
        producer.commit()
        sent += 1
    producer.close()
    assert logins.connections <= CONNECTIONS_MAX


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    tools.require(tools.missing_node())
    made = OidcProvider(tmp_path_factory.mktemp("oidc") / "log", ["alice"])
    yield made
    made.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_producer_works_on_with_tokens(
    name: str, tmp_path: Path, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "connections.max.reauth.ms": SESSION_MS,
        **bearer_listener(provider),
    }
    login = ("OAUTHBEARER", "alice", "alice-secret")
    alice = OAuthSecurity("SASL_PLAINTEXT", *login, token_url=provider.token_url)
    if name.startswith("java"):  # it asks only providers that its JVM allows
        java: JavaServer = request.getfixturevalue(f"java_clients_{name.partition('-')[2].replace('.', '')}")
        set_system_properties(java, org_apache_kafka_sasl_oauthbearer_allowed_urls=provider.token_url)
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        with Blocking(broker.bootstrap, security=alice.java()) as ours:
            ours.admin.topics.create("t")
        logins = Logins(monkeypatch)
        work_over_sessions(client_of(name, request, alice), broker.bootstrap, logins)
    assert logins.principals == {"User:alice"}


@pytest.mark.parametrize("name", ["java-4.3.1", "java-3.9.2", "franz-go", "kafka-python"])
def test_a_producer_works_on_with_tickets(
    name: str, tmp_path: Path, kdc: Kdc, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    settings = listener(kdc.add(f"{SERVICE}/{HOST}"), connections_max_reauth_ms=SESSION_MS)
    settings["super.users"] += ";User:alice"
    place = settings["advertised.listeners"].partition("://")[2]
    alice = with_keytab(f"alice@{REALM}", kdc.add("alice"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.tickets('alice', Path(alice.password))}")
    if name.startswith("java"):
        java: JavaServer = request.getfixturevalue(f"java_clients_{name.partition('-')[2].replace('.', '')}")
        set_system_properties(java, java_security_krb5_conf=str(kdc.config))
    with EmbeddedBroker(tmp_path / "data", settings):
        with Blocking(place, security=alice.java()) as ours:
            ours.admin.topics.create("t")
        logins = Logins(monkeypatch)
        work_over_sessions(client_of(name, request, alice), place, logins)
    assert logins.principals == {"User:alice"}
