"""Connection limits of tenants: one connection too many is refused after it has authenticated."""

from __future__ import annotations

import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.server.security.secured import Certificates, plain_jaas
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ErrorCode
from ottla.model.tenancy.tenants import TenantLimits
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

PASSWORDS = {"admin": "a", "acme.one": "b", "acme.two": "c", "globex.one": "d"}
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
ADMIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "admin",
    "sasl.password": PASSWORDS["admin"],
}


def log_in(connection: RawConnection, user: str) -> Any:
    connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    message = f"\0{user}\0{PASSWORDS[user]}".encode()
    return connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)


def test_connections_of_a_tenant(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas("admin", PASSWORDS),
        "connection.failed.authentication.delay.ms": "1",
    }
    with EmbeddedBroker(tmp_path_factory.mktemp("node"), settings) as broker:
        with Blocking(broker.bootstrap, security=ADMIN) as client:
            client.admin.tenants.create("acme", TenantLimits(-1, -1, 2))
        with RawConnection(broker.bootstrap) as first, RawConnection(broker.bootstrap) as second:
            assert log_in(first, "acme.one").error_code == log_in(second, "acme.two").error_code == 0
            assert log_in(first, "acme.one").error_code == 0, "authenticating again is no new connection"
            with RawConnection(broker.bootstrap) as third:
                told = log_in(third, "acme.one")
                assert told.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
                assert told.error_message == "Tenant acme has 2 connections to this broker, and may have no more."
            with RawConnection(broker.bootstrap) as neighbour:
                assert log_in(neighbour, "globex.one").error_code == 0

        def fits() -> bool:
            with RawConnection(broker.bootstrap) as again:
                return bool(log_in(again, "acme.one").error_code == 0)

        until(fits)  # closed connections make room


def test_connections_from_before_the_limit_count(tmp_path: Path) -> None:
    """Otherwise they would be taken off the count when they leave, without having been added."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas("admin", PASSWORDS),
        "connection.failed.authentication.delay.ms": "1",
    }
    with EmbeddedBroker(tmp_path, settings) as broker, contextlib.ExitStack() as open_connections:
        early = [open_connections.enter_context(RawConnection(broker.bootstrap)) for _ in range(3)]
        assert [log_in(each, "acme.one").error_code for each in early] == [0, 0, 0]
        with Blocking(broker.bootstrap, security=ADMIN) as client:
            client.admin.tenants.create("acme", TenantLimits(-1, -1, 2))
        early.pop().close()
        until(lambda: counted(broker), lambda count: count == 2)
        with RawConnection(broker.bootstrap) as third:
            assert log_in(third, "acme.two").error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def counted(broker: EmbeddedBroker) -> int:
    assert broker.node is not None
    return broker.node.rooms.tenants._connections["acme"]


def test_a_certificate_does_not_stand_for_the_user_of_sasl(tmp_path: Path) -> None:
    certificates = Certificates.make(tmp_path / "certificates")
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "listener.name.sasl_ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain_jaas("admin", PASSWORDS),
        "connection.failed.authentication.delay.ms": "1",
    }
    security = ADMIN | {"security.protocol": "SASL_SSL"} | certificates.ours("admin")
    tls = certificates.context
    with EmbeddedBroker(tmp_path / "data", settings | certificates.node()) as broker:
        with Blocking(broker.bootstrap, security=security) as client:
            client.admin.tenants.create("acme", TenantLimits(-1, -1, 1))
        with RawConnection(broker.bootstrap, tls=tls) as first, RawConnection(broker.bootstrap, tls=tls) as second:
            assert log_in(first, "acme.one").error_code == 0
            assert log_in(second, "acme.two").error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_one_certificate_too_many_is_closed(tmp_path: Path) -> None:
    """There is no answer in which the reason could be."""
    certificates = Certificates.make(tmp_path / "certificates")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/,DEFAULT",
    }
    admin = {"security.protocol": "SSL"} | certificates.ours("admin")
    alice = ssl.create_default_context(cafile=str(certificates.trusted))
    alice.load_cert_chain(certificates.authority.client("acme.one").write(tmp_path, "acme.one"))
    with EmbeddedBroker(tmp_path / "data", settings | certificates.node()) as broker:
        with Blocking(broker.bootstrap, security=admin) as client:
            client.admin.tenants.create("acme", TenantLimits(-1, -1, 1))

        def is_served(connection: RawConnection) -> bool:
            try:
                connection.call(HELLO, 3)
            except (Closed, OSError):
                return False
            return True

        with RawConnection(broker.bootstrap, tls=alice) as first:
            assert is_served(first)
            with RawConnection(broker.bootstrap, tls=alice) as second:
                assert not is_served(second)
            with RawConnection(broker.bootstrap, tls=certificates.context) as neighbour:
                assert is_served(neighbour) and is_served(first)

        def fits() -> bool:
            with RawConnection(broker.bootstrap, tls=alice) as again:
                return is_served(again)

        until(fits)
