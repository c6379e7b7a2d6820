"""The audit log of a registry: who is refused, and who changes what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.registry.security.web import AUTHORIZER, USERS, ask, basic, secure_broker, store_settings
from tests.server.security.secured import Certificates
from tests.support.processes.registry import record

from ottla.registry.security.audit import RegistryAudit
from ottla.registry.security.settings import InvalidRegistrySettings, registry_settings
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

AUDITED = {"authentication.method": "BASIC", "super.users": "User:admin", "ottla.audit.to": "file"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[EmbeddedBroker]:
    with secure_broker(tmp_path_factory.mktemp("broker"), certificates, **AUTHORIZER) as broker:
        yield broker


def test_refusals_and_changes(tmp_path: Path, broker: EmbeddedBroker, certificates: Certificates) -> None:
    path = tmp_path / "audit.log"
    settings = store_settings(certificates) | AUDITED | {"ottla.audit.file": str(path)}
    admin, alice, body = basic("admin"), basic("alice"), {"schema": record("R")}
    registry = Registry(broker.bootstrap, settings=settings).start()
    try:
        versions = "/subjects/orders-value/versions"
        assert ask(registry.url, "POST", versions, basic("admin", "wrong-secret"), body=body).status == 401
        assert ask(registry.url, "POST", versions, ("Authorization", "a-secret-token"), body=body).status == 401
        assert ask(registry.url, "POST", versions, body=body).status == 401
        assert ask(registry.url, "POST", versions, alice, body=body).status == 403
        assert ask(registry.url, "PUT", "/mode", alice, body={"mode": "READONLY"}).status == 403
        assert ask(registry.url, "POST", versions, admin, body=body).status == 200
        assert ask(registry.url, "GET", versions, admin).status == 200
        assert ask(registry.url, "DELETE", "/subjects/orders-value?permanent=false", admin).status == 200
    finally:
        registry.stop()
    lines = path.read_text()
    events = [json.loads(line) for line in lines.splitlines()]
    assert [
        (each["principal"], each["action"], each["resource"], each["outcome"], each.get("claimed") or each.get("named"))
        for each in events
    ] == [
        ("", "AUTHENTICATE", "http", "refused", "admin"),
        ("", "AUTHENTICATE", "http", "refused", None),
        ("", "AUTHENTICATE", "http", "refused", None),
        ("User:alice", "WRITE", "orders", "refused", None),
        ("User:alice", "ALTER", "kafka-cluster", "refused", None),
        ("User:admin", "CHANGE", "POST /subjects/{subject}/versions", "allowed", "orders-value"),
        ("User:admin", "CHANGE", "DELETE /subjects/{subject}", "allowed", "orders-value; permanent=false"),
    ]
    assert [each.get("mechanism") for each in events[:3]] == ["BASIC", "NONE", "NONE"]
    assert {each["host"] for each in events} == {"127.0.0.1"}
    assert not [each for each in (*USERS.values(), "wrong-secret", "a-secret-token") if each in lines]


@pytest.mark.parametrize(
    ("audit", "problem"),
    [
        ({"to": "file"}, "ottla.audit.file must name the file"),
        ({"to": "file", "file": "/no/such/directory/audit.log"}, "there is no directory /no/such/directory"),
        ({"to": "file,topic", "file": "audit.log"}, "a registry writes its audit log to a file"),
    ],
)
def test_what_cannot_be_written_is_refused(audit: dict[str, str], problem: str) -> None:
    config, _ = registry_settings({f"ottla.audit.{name}": value for name, value in audit.items()})
    with pytest.raises(InvalidRegistrySettings, match=problem):
        RegistryAudit.of(config, lambda: 0)
