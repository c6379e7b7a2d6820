"""PasswordCheck: what a registry takes a broker's answer for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

import pytest
from tests.server.security.secured import log_in, plain_jaas
from tests.support.requests.raw import RawConnection

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.model.tenancy.tenants import TenantLimits
from ottla.registry.security.passwords import PasswordCheck
from ottla.testing.broker import EmbeddedBroker

USERS = {"admin": "a", "acme.app": "b"}
OWN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "admin",
    "sasl.password": USERS["admin"],
}
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(users=USERS),
        "connection.failed.authentication.delay.ms": "1",
    }
    with EmbeddedBroker(tmp_path_factory.mktemp("node"), settings) as broker:
        yield broker


async def is_right(broker: EmbeddedBroker, user: str, password: str) -> bool:
    async with Cluster.of(broker.bootstrap, OWN) as cluster:
        return await PasswordCheck(cluster, "PLAIN").confirms(user, password, HOST)


def test_a_password_is_checked_although_the_tenant_has_all_its_connections(broker: EmbeddedBroker) -> None:
    async def limit() -> None:
        async with Admin(broker.bootstrap, security=OWN) as admin:
            await admin.tenants.create("acme", TenantLimits(-1, -1, 1))

    asyncio.run(limit())
    with contextlib.closing(log_in(RawConnection(broker.bootstrap), "acme.app", USERS)):
        assert asyncio.run(is_right(broker, "acme.app", USERS["acme.app"]))
        assert not asyncio.run(is_right(broker, "acme.app", "wrong"))


@pytest.mark.parametrize(("user", "password"), [("admin", "a\0b"), ("ad\0min", "a"), ("", "a"), ("admin", "")])
def test_what_cannot_be_a_password_is_wrong(
    broker: EmbeddedBroker, user: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no failure of the brokers, of which the log would tell for each request."""
    with caplog.at_level(logging.WARNING):
        assert not asyncio.run(is_right(broker, user, password))
    assert not caplog.records
