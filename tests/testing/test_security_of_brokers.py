"""Brokers of the pytest plugin whose settings secure their listener: whoever is told `security` gets in, in every way
that clients can prove who they are, and so does the broker's own registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.server.security.oauth_settings import LOGIN, UNSECURED
from tests.server.security.secured import MODULES, PASSWORDS, Certificates, plain_jaas
from tests.support.processes.registry import ask, record

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS
from ottla.testing.broker import EmbeddedBroker

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


def test_a_registry_that_could_not_log_in_is_refused(ottla_broker_factory: Make, tmp_path: Path) -> None:
    broker = ottla_broker_factory(**ways(tmp_path)["PLAIN"].settings)
    with pytest.raises(ValueError, match="the first listener has SASL_PLAINTEXT: security= says what its clients need"):
        _ = broker.registry
