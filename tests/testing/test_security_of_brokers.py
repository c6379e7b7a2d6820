"""Brokers of the pytest plugin whose settings secure their listener: whoever is told `security` gets in, in every way
that clients can prove who they are, and so does the broker's own registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.server.security.gssapi_settings import listener as gssapi_listener
from tests.server.security.oauth_settings import LOGIN, UNSECURED
from tests.server.security.secured import MODULES, PASSWORDS, Certificates, plain_jaas
from tests.support.clients.kerberos import HOST, SERVICE, with_keytab
from tests.support.clients.security import ClientSecurity
from tests.support.processes.kdc import REALM, Kdc
from tests.support.processes.registry import ask, record

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import AuthenticationError, ClientError
from ottla.model.errors import ApiError
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

Make = Callable[..., EmbeddedBroker]


class Way(NamedTuple):
    """The settings of a broker, and what its clients need."""

    settings: Mapping[str, str]
    security: Mapping[str, str]


def listener(protocol: str, mechanism: str = "") -> dict[str, str]:
    own = {"listeners": f"{protocol}://127.0.0.1:0", "security.inter.broker.protocol": protocol}
    if mechanism:
        own |= {"sasl.enabled.mechanisms": mechanism, "sasl.mechanism.inter.broker.protocol": mechanism}
    return own


def by_password(mechanism: str, **more: str) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.username": "admin", "sasl.password": PASSWORDS["admin"], **more}


def ways(directory: Path) -> dict[str, Way]:
    certificates = Certificates.make(directory / "certificates")
    tls, trust = certificates.node(), certificates.ours()
    plain = {"listener.name.{}.plain.sasl.jaas.config": plain_jaas()}
    tokens = {
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f'{LOGIN} unsecuredLoginStringClaim_sub="node";',
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
    }

    def at(name: str) -> dict[str, str]:
        return {key.format(name): text for key, text in plain.items()}

    return {
        "PLAIN": Way(
            listener("SASL_PLAINTEXT", "PLAIN") | at("sasl_plaintext"),
            {"security.protocol": "SASL_PLAINTEXT"} | by_password("PLAIN"),
        ),
        "PLAIN over TLS": Way(
            listener("SASL_SSL", "PLAIN") | at("sasl_ssl") | tls,
            {"security.protocol": "SASL_SSL"} | by_password("PLAIN") | trust,
        ),
        "TLS": Way(listener("SSL") | tls, {"security.protocol": "SSL"} | trust),
        "certificates": Way(
            listener("SSL") | tls | {"ssl.client.auth": "required"},
            {"security.protocol": "SSL"} | certificates.ours("admin"),
        ),
        "OAUTHBEARER": Way(
            listener("SASL_PLAINTEXT", "OAUTHBEARER") | tokens,
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": f'{LOGIN} unsecuredLoginStringClaim_sub="alice";',
            },
        ),
    }


@pytest.mark.parametrize("name", ["PLAIN", "PLAIN over TLS", "TLS", "certificates", "OAUTHBEARER"])
def test_every_way_in(name: str, ottla_broker_factory: Make, tmp_path: Path) -> None:
    settings, security = ways(tmp_path)[name]
    broker = ottla_broker_factory(security=security, **settings)
    assert broker.security == security
    write_and_read(broker)


def write_and_read(broker: EmbeddedBroker) -> None:
    """With `broker.security`, without any, and through the broker's registry."""
    with Blocking(broker.bootstrap, security=broker.security) as client:
        client.send("orders", b"x")
        assert [each.value for each in client.read("orders")] == [b"x"]
    with Blocking(broker.bootstrap) as stranger, pytest.raises(ClientError):
        stranger.send("orders", b"y")
    versions = "/subjects/orders-value/versions"
    assert ask(broker.registry.url, "POST", versions, {"schema": record("R")}).content["id"] == 1


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_with_scram(mechanism: str, ottla_broker_factory: Make) -> None:
    """They are made on a plaintext listener behind the first one."""
    security = {"security.protocol": "SASL_PLAINTEXT"} | by_password(mechanism)
    line = f'{MODULES}.scram.ScramLoginModule required username="admin" password="{PASSWORDS["admin"]}";'
    broker = ottla_broker_factory(
        security=security,
        **{
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": mechanism,
            f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config": line,
        },
    )
    assert broker.node is not None
    host, port = broker.node.addresses[1]
    with Blocking(f"{host}:{port}") as admin:
        admin.admin.users.set_password("admin", PASSWORDS["admin"], mechanism=SCRAM_MECHANISMS[mechanism])
    with Blocking(broker.bootstrap, security=broker.security) as client:
        client.send("orders", b"x")
    assert ask(broker.registry.url, "GET", "/subjects").content == []
    before = list(broker.node.addresses)
    assert broker.restart().node is not None and broker.node.addresses == before


def test_tickets_of_a_realm(kdc: Kdc, ottla_broker_factory: Make, tmp_path: Path) -> None:
    """The broker's address has the name for which clients ask for a ticket."""
    keytab = kdc.add(f"{SERVICE}/{HOST}")
    settings = gssapi_listener(keytab) | {"super.users": "User:alice"}
    broker = ottla_broker_factory(security=with_keytab(f"alice@{REALM}", kdc.add("alice")).java(), **settings)
    write_and_read(broker)
    denied = with_keytab(f"bob@{REALM}", kdc.add("bob")).java()
    with Blocking(broker.bootstrap, security=denied) as client, pytest.raises(ApiError, match="AUTHORIZATION_FAILED"):
        client.send("orders", b"y")


def test_a_delegation_token(ottla_broker_factory: Make, tmp_path: Path) -> None:
    """A client that logged in otherwise gets the token; whoever has it then gets in, and so does a registry."""
    way = ways(tmp_path)["PLAIN over TLS"]
    more = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        "delegation.token.secret.key": "a key of a test, which nobody else has",
    }
    broker = ottla_broker_factory(security=way.security, **{**way.settings, **more})
    with Blocking(broker.bootstrap, security=broker.security) as client:
        token = client.admin.tokens.create()
    certificates = str(tmp_path / "certificates" / "ca.pem")
    login = ("SASL_SSL", "SCRAM-SHA-256", token.token_id, token.password, certificates)
    holder = ClientSecurity(*login, is_token=True).java()
    with Blocking(broker.bootstrap, security=holder) as client:
        client.send("orders", b"x")
        assert [each.value for each in client.read("orders")] == [b"x"]
    store = {f"kafkastore.{name}": text for name, text in holder.items()}
    registry = Registry(broker.bootstrap, settings=store).start()
    try:
        assert ask(registry.url, "GET", "/subjects").content == []
    finally:
        registry.stop()
    with Blocking(broker.bootstrap, security=broker.security) as client:
        client.admin.tokens.expire(token.hmac)
    with Blocking(broker.bootstrap, security=holder) as client, pytest.raises(AuthenticationError):
        client.send("orders", b"y")


def test_a_registry_that_could_not_log_in_is_refused(ottla_broker_factory: Make, tmp_path: Path) -> None:
    broker = ottla_broker_factory(**ways(tmp_path)["PLAIN"].settings)
    with pytest.raises(ValueError, match="the first listener has SASL_PLAINTEXT: security= says what its clients need"):
        _ = broker.registry
