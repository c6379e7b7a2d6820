"""Real clients with tickets of a real KDC, with TLS and without: they write transactions, and read them in a group, as
alice.

confluent-kafka's wheel is built without GSSAPI, so librdkafka is here as kcat, which Debian builds with it. kafkajs has
no GSSAPI.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import Producer as ConfluentProducer
from tests.compat.security.round_trips import (
    GSSAPI,
    OURS,
    VALUES,
    client_of,
    our_round_trip,
    round_trip,
    set_system_properties,
)
from tests.server.security.gssapi_settings import NODE, listener
from tests.server.security.secured import Certificates
from tests.support import tools
from tests.support.clients.kerberos import HOST, KerberosSecurity, keytab_login, with_keytab
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.kdc import REALM, Kdc
from tests.support.waiting import WAIT_S
from typer.testing import CliRunner

from ottla import Admin
from ottla.cli.app import app
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.testing.broker import EmbeddedBroker

PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
NAMES = ("java-4.3.1", "java-3.9.2", "aiokafka", "kafka-python", "franz-go")
KINDS = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def places(kdc: Kdc, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where a node listens, by protocol. Alice may use names that begin with hers."""
    keytab = kdc.add("kafka/localhost")
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    own = {
        "listeners": ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items()),
        "advertised.listeners": ",".join(f"{protocol}://{HOST}:{port}" for protocol, port in ports.items()),
        "listener.name.sasl_ssl.gssapi.sasl.jaas.config": keytab_login(NODE, keytab),
    }
    found = {protocol: f"{HOST}:{port}" for protocol, port in ports.items()}

    async def prepare() -> None:
        security = with_keytab(NODE, keytab, certificates.trusted).java()
        async with Admin(found["SASL_SSL"], security=security) as admin:
            await admin.acls.create(
                AclEntry(kind, "alice", PatternType.PREFIXED, "User:alice", "*", AclOperation.ALL, AclPermission.ALLOW)
                for kind in KINDS
            )
            for name in (*NAMES, "kcat", "cli", OURS):
                for protocol in PROTOCOLS:
                    await admin.topics.create(topic_of(name, protocol), 1)

    with EmbeddedBroker(tmp_path_factory.mktemp("node"), listener(keytab) | own | certificates.node()):
        asyncio.run(prepare())
        yield found


def topic_of(name: str, protocol: str) -> str:
    return f"alice-{name}-{protocol}"


@pytest.fixture
def alice(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> KerberosSecurity:
    """Alice's login, with a keytab and with a ticket in the cache that programs of this process find."""
    keytab = kdc.directory / "alice.keytab"
    if not keytab.exists():
        kdc.add("alice")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.tickets('alice', keytab)}")
    return with_keytab(f"alice@{REALM}", keytab)


@pytest.fixture(scope="module")
def javas(kdc: Kdc, java_clients_431: JavaServer, java_clients_392: JavaServer) -> None:
    """Java's clients find the realm."""
    for java in (java_clients_431, java_clients_392):
        set_system_properties(java, java_security_krb5_conf=str(kdc.config))


def over(protocol: str, alice: KerberosSecurity, certificates: Certificates) -> KerberosSecurity:
    return alice._replace(protocol=protocol, authority=str(certificates.trusted) if protocol == "SASL_SSL" else "")


@pytest.mark.feature(GSSAPI)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", NAMES)
def test_writes_and_reads(
    name: str,
    protocol: str,
    places: dict[str, str],
    alice: KerberosSecurity,
    certificates: Certificates,
    javas: None,
    request: pytest.FixtureRequest,
) -> None:
    client = client_of(name, request, over(protocol, alice, certificates))
    round_trip(client, places[protocol], topic_of(name, protocol))


@pytest.mark.tool("kcat (librdkafka)")
@pytest.mark.feature(GSSAPI)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_librdkafka_by_kcat(
    protocol: str, places: dict[str, str], alice: KerberosSecurity, certificates: Certificates
) -> None:
    """It gets its tickets by itself, from the keytab."""
    tools.require(tools.missing_kcat())
    security = over(protocol, alice, certificates).librdkafka()
    topic = topic_of("kcat", protocol)

    def kcat(*words: str, text: str = "") -> str:
        settings = [word for name, value in security.items() for word in ("-X", f"{name}={value}")]
        command = ["kcat", "-b", places[protocol], "-t", topic, *settings, *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    kcat("-P", text="\n".join(VALUES))
    assert kcat("-C", "-e", "-q", "-o", "beginning").splitlines() == VALUES


@pytest.mark.tool(OURS)
@pytest.mark.feature(GSSAPI)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_our_client(protocol: str, places: dict[str, str], alice: KerberosSecurity, certificates: Certificates) -> None:
    our_round_trip(places[protocol], topic_of(OURS, protocol), over(protocol, alice, certificates).java())


def test_commands(places: dict[str, str], alice: KerberosSecurity, certificates: Certificates, tmp_path: Path) -> None:
    """`ottla` with the file of properties that Kafka's tools take."""
    settings = over("SASL_SSL", alice, certificates).java()
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    words = ("-b", places["SASL_SSL"], "--command-config", str(path))
    for command, text, told in (
        (["produce", topic_of("cli", "SASL_SSL")], "a value\n", ""),
        (["consume", topic_of("cli", "SASL_SSL"), "--from-beginning", "-n", "1"], "", "a value"),
    ):
        done = CliRunner().invoke(app, [*command, *words], input=text)
        assert done.exit_code == 0 and told in done.stdout, done.output


def test_the_wheel_of_librdkafka_has_no_gssapi() -> None:
    """When it has, it belongs among the clients above."""
    settings = {"bootstrap.servers": "localhost:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "GSSAPI"}
    with pytest.raises(KafkaException, match="No provider for SASL mechanism GSSAPI"):
        ConfluentProducer(settings)
