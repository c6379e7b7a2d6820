"""`ottla security audit`: every kind of finding, provoked in a file or in a running cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, invoke
from tests.support.certificates import Authority
from tests.support.ports import free_ports

from ottla.cli.nodes.local_cluster import define
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.certificates import issue, make_authority

AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
SASL = "sasl.enabled.mechanisms=SCRAM-SHA-512\n"
Audit = Callable[..., dict[str, str]]


def findings(run: Run) -> dict[str, str]:
    """The severity by what was found; each one says why, and what to do."""
    found: list[dict[str, Any]] = run.json
    assert all(each["why"] and each["fix"] for each in found)
    assert run.code == (1 if any(each["severity"] == "high" for each in found) else 0)
    order = [("high", "medium", "low").index(each["severity"]) for each in found]
    assert order == sorted(order)
    return {each["what"]: each["severity"] for each in found}


def severity(found: dict[str, str], part: str) -> str | None:
    matching = [value for what, value in found.items() if part in what]
    assert len(matching) < 2, matching
    return matching[0] if matching else None


@pytest.fixture
def audited(tmp_path: Path) -> Audit:
    """The findings in a server.properties with these lines."""

    def audit(text: str, mode: int = 0o600) -> dict[str, str]:
        path = tmp_path / "server.properties"
        path.write_text(f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path}\n{text}")
        path.chmod(mode)
        return findings(invoke("security", "audit", "--config", str(path), "--json"))

    return audit


def certificate(path: Path, days: int, mode: int = 0o600) -> str:
    """The settings of a certificate that is valid for so many more days."""
    now = datetime.now(UTC)
    authority = make_authority("ca", now - timedelta(days=400))
    made = issue(authority, "node", ["localhost"], now - timedelta(days=300), valid_for=timedelta(days=300 + days))
    path.write_text(made.text)
    path.chmod(mode)
    return f"ssl.keystore.type=PEM\nssl.keystore.location={path}\n"


def test_a_pkcs12_store_is_read_with_its_password(audited: Audit, tmp_path: Path) -> None:
    store = tmp_path / "node.p12"
    store.write_bytes(Authority().server(expired=True).pkcs12("of the store"))
    store.chmod(0o600)
    settings = f"listeners=SSL://127.0.0.1:9092\n{AUTHORIZER}ssl.keystore.type=PKCS12\nssl.keystore.location={store}\n"
    found = audited(f"{settings}listener.name.ssl.ssl.keystore.password=of the store\n")
    assert severity(found, "has expired") == "high"
    assert severity(audited(settings), "has expired") is None
    path = str(tmp_path / "server.properties")
    told = invoke("security", "audit", "--config", path).err
    assert "its time was not checked; if it is PKCS #12, ssl.keystore.password gives its password" in told


def test_listeners_and_the_missing_authorizer(audited: Audit) -> None:
    found = audited("listeners=PLAINTEXT://0.0.0.0:9092\n")
    at = "listener PLAINTEXT (PLAINTEXT) at 0.0.0.0:9092"
    assert severity(found, f"{at} does not authenticate") == "high"
    assert severity(found, f"{at} is not encrypted") == "medium"
    assert severity(found, "no authorizer") == "high"
    found = audited("listeners=PLAINTEXT://127.0.0.1:9092\n")
    assert set(found.values()) == {"low", "medium"} and severity(found, "no authorizer") == "medium"
    found = audited(f"listeners=SASL_PLAINTEXT://10.0.0.1:9092\n{SASL}{AUTHORIZER}")
    assert found == {
        "server.properties: listener SASL_PLAINTEXT (SASL_PLAINTEXT) at 10.0.0.1:9092 is not encrypted": "high"
    }


def test_tls_without_client_certificates(audited: Audit, tmp_path: Path) -> None:
    text = f"listeners=SSL://10.0.0.1:9092\n{AUTHORIZER}" + certificate(tmp_path / "node.pem", 200)
    found = audited(text)
    assert found == {"server.properties: listener SSL (SSL) at 10.0.0.1:9092 does not authenticate": "high"}
    assert audited(f"{text}listener.name.ssl.ssl.client.auth=required\n") == {}


def test_rules_that_are_too_wide(audited: Audit) -> None:
    base = f"listeners=SASL_PLAINTEXT://127.0.0.1:9092\n{SASL}{AUTHORIZER}"
    assert severity(audited(base), "allow.everyone") is None
    found = audited(f"{base}allow.everyone.if.no.acl.found=true\nsuper.users=User:admin;User:ANONYMOUS\n")
    assert severity(found, "allow.everyone.if.no.acl.found=true") == "high"
    assert severity(found, "User:admin is a super user") == "low"
    assert severity(found, "User:ANONYMOUS is a super user") == "high"


@pytest.mark.parametrize(("days", "told"), [(200, None), (29, "medium"), (-1, "high")])
def test_certificates(audited: Audit, tmp_path: Path, days: int, told: str | None) -> None:
    found = audited(f"listeners=SASL_SSL://127.0.0.1:9092\n{SASL}{AUTHORIZER}" + certificate(tmp_path / "n.pem", days))
    assert severity(found, "the certificate CN=node") == told and len(found) == (told is not None)


def test_files_that_others_can_read(audited: Audit, tmp_path: Path) -> None:
    secret = 'listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=x.ScramLoginModule required password="p";\n'
    base = f"listeners=SASL_SSL://127.0.0.1:9092\n{SASL}{AUTHORIZER}"
    key = tmp_path / "node.pem"
    found = audited(base + secret + certificate(key, 200, 0o644), 0o640)
    assert severity(found, f"{key} holds a private key") == "high"
    assert severity(found, "server.properties holds passwords") == "medium"
    assert audited(base + secret + certificate(key, 200)) == {}
    assert audited(base + certificate(key, 200), 0o644) == {}, "no secret in it"


def test_data_that_others_can_read(audited: Audit, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    base = f"listeners=SASL_SSL://127.0.0.1:9092\n{SASL}{AUTHORIZER}{certificate(tmp_path / 'n.pem', 200)}"
    base += f"log.dirs={data}\n"
    data.chmod(0o755)
    assert audited(base) == {}, "the directory above keeps others out"
    above = [each for each in tmp_path.parents if each.owner() == tmp_path.owner() and not each.stat().st_mode & 0o001]
    modes = {each: each.stat().st_mode for each in (tmp_path, *above)}
    try:
        for each in modes:
            each.chmod(0o711)
        assert severity(audited(base), f"{data} holds records") == "high"
        data.chmod(0o750)
        assert severity(audited(base), f"{data} holds records") == "medium"
        data.chmod(0o700)
        assert audited(base) == {}
    finally:
        for each, mode in modes.items():
            each.chmod(mode)


def test_what_up_secure_makes_is_clean(tmp_path: Path) -> None:
    (node,) = define(tmp_path, 1, None, ("127.0.0.1", 0), secure=True)
    found = findings(invoke("security", "audit", "--config", str(node.path), "--json"))
    assert set(found.values()) == {"low"} and all("is a super user" in each for each in found)
    assert "why: " in invoke("security", "audit", "--config", str(node.path)).out


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    settings = dict([AUTHORIZER.strip().split("=")]) | {
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
    }
    with EmbeddedBroker(tmp_path / "data", settings) as running:
        yield running


def test_a_running_cluster(broker: EmbeddedBroker, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")

    def ottla(*words: str) -> Run:
        return invoke(*words, env={"OTTLA_BOOTSTRAP": broker.bootstrap})

    def audit() -> dict[str, str]:
        return findings(ottla("security", "audit", "--json"))

    found = audit()
    assert severity(found, "does not authenticate") == "low" and severity(found, "is not encrypted") == "low"
    assert severity(found, "no authorizer") is None
    assert severity(found, "super.users is set, and brokers hide its value") == "low"
    assert severity(found, "allow.everyone.if.no.acl.found is set") == "medium"
    user = ("--password-file", str(password), "-m", "SCRAM-SHA-512")
    assert ottla("user", "add", "alice", *user, "--iterations", "4096").code == 0
    assert ottla("user", "add", "bob", *user).code == 0
    assert ottla("user", "add", "node", *user).code == 0
    assert ottla("acl", "add", "User:*", "--topic", "t", "-o", "read").code == 0
    assert ottla("acl", "add", "User:*", "--topic", "x", "--prefix", "-o", "all").code == 0
    assert ottla("acl", "add", "User:*", "--topic", "y", "-o", "all", "--deny").code == 0
    for option, name, operation in (
        ("--user-principal", "User:bob", "describe-tokens"),
        ("--transactional-id", "w", "write"),
        ("--group", "g", "read"),
        ("--delegation-token", "d", "describe"),
    ):
        assert ottla("acl", "add", "User:*", option, name, "-o", operation).code == 0
    found = audit()
    assert severity(found, "user alice: SCRAM-SHA-512 with 4096 iterations") == "low"
    assert severity(found, "user bob: SCRAM") is None
    assert severity(found, "user alice has no quota") == severity(found, "user bob has no quota") == "low"
    assert severity(found, "user node has no quota") is None, "it would throttle replication"
    assert severity(found, "User:* may read on topic t") == "medium"
    assert severity(found, "User:* may do everything on topics that begin with x") == "high"
    assert severity(found, "topic y") is None
    # What is said against it works.
    fixes = [each["fix"] for each in ottla("security", "audit", "--json").json if "User:*" in each["what"]]
    for fix in fixes:
        assert ottla(*fix.replace("'", "").split()[1:], "--yes").code == 0
    assert ottla("quota", "set", "--user", "alice", "producer_byte_rate=1MiB").code == 0
    found = audit()
    assert not [what for what in found if "User:* " in what]
    assert severity(found, "user alice has no quota") is None and severity(found, "user bob has no quota") == "low"
    assert ottla("quota", "set", "--default-user", "producer_byte_rate=1MiB").code == 0
    assert severity(audit(), "has no quota") is None


def test_a_running_cluster_without_an_authorizer(ottla_broker: EmbeddedBroker) -> None:
    found = findings(invoke("security", "audit", "--json", env={"OTTLA_BOOTSTRAP": ottla_broker.bootstrap}))
    assert severity(found, "no authorizer") == "medium"


def test_the_certificate_that_a_broker_shows(tmp_path: Path) -> None:
    store = tmp_path / "node.pem"
    settings = dict(line.split("=") for line in certificate(store, 20).splitlines())
    settings |= {"listeners": f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{free_ports(1)[0]}"}
    with EmbeddedBroker(tmp_path / "data", settings) as running:
        found = findings(invoke("security", "audit", "--json", env={"OTTLA_BOOTSTRAP": running.bootstrap}))
    assert severity(found, "the certificate CN=node expires in") == "medium"
