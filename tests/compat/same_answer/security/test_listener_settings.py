"""Settings of listeners: a real Kafka and Ottla on the same server.properties let the same clients in, and take the
same changes of certificates.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from tests.server.security.secured import MODULES
from tests.server.security.test_sasl_listener import send_scram
from tests.support.certificates import Authority
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.model.errors import ErrorCode
from ottla.security.sasl.scram.credentials import ScramMechanism, salted_password
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

PLAIN_LOGIN = f"{MODULES}.plain.PlainLoginModule required"
# Each has its own port. INTERNAL is the listener between brokers; LOOSE may get certificates with other names.
LISTENERS = {
    "TLS": "SSL",
    "INTERNAL": "SSL",
    "LOOSE": "SSL",
    "PASSWORDS": "SASL_PLAINTEXT",
    "SECURE": "SASL_SSL",
    "MUTUAL": "SASL_SSL",
}


class Side(NamedTuple):
    name: str
    directory: Path
    authority: Authority
    ports: dict[str, int]
    bootstrap: str

    def at(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def context(self, client: str | None = None) -> ssl.SSLContext:
        made = ssl.create_default_context(cadata=self.authority.pem)
        if client is not None:
            made.load_cert_chain(self.authority.client(client).write(self.directory, client))
        return made

    def alter(self, *changes: tuple[str, str | None], dry: bool = False) -> tuple[int, str]:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        entries = [
            resource.AlterableConfig(name=name, config_operation=0 if value is not None else 1, value=value)
            for name, value in changes
        ]
        request = IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=4, resource_name="1", configs=entries)], validate_only=dry
        )
        with RawConnection(self.bootstrap) as connection:
            answer: Any = connection.call(request, 1)
        return answer.responses[0].error_code, answer.responses[0].error_message or ""


def properties(directory: Path, authority: Authority, ports: dict[str, int], kafka: RealKafka) -> dict[str, str]:
    """The same for both, except for ports and paths."""
    own = kafka.properties
    places = [f"{name}://localhost:{port}" for name, port in ports.items()]
    protocols = [f"{name}:{protocol}" for name, protocol in LISTENERS.items()]
    controllers = own["listener.security.protocol.map"].replace("CONTROLLER:PLAINTEXT", "CONTROLLER:SASL_PLAINTEXT")
    node = f'{PLAIN_LOGIN} username="node" password="right" user_node="right" user_alice="right";'
    mallory = f'{PLAIN_LOGIN} username="node" password="wrong" user_node="wrong" user_mallory="right";'
    made = {
        "listeners": ",".join([own["listeners"], *places]),
        "advertised.listeners": ",".join([own["advertised.listeners"], *places]),
        "listener.security.protocol.map": ",".join([controllers, *protocols]),
        "inter.broker.listener.name": "INTERNAL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.node().write(directory, "node")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write(directory / "ca.pem")),
        "ssl.client.auth": "required",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.loose.ssl.allow.dn.changes": "true",
        "listener.name.loose.ssl.allow.san.changes": "true",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.jaas.config": mallory,
        "listener.name.passwords.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.passwords.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        "listener.name.passwords.connections.max.reauth.ms": "600000",
    }
    for listener in ("controller", "passwords", "secure", "mutual"):
        made[f"listener.name.{listener}.sasl.jaas.config"] = mallory
        made[f"listener.name.{listener}.plain.sasl.jaas.config"] = node
    for listener in ("tls", "internal", "loose"):
        store = str(authority.node().write(directory, listener))
        made[f"listener.name.{listener}.ssl.keystore.location"] = store
        trusted = authority.write(directory / f"{listener}-ca.pem")
        made[f"listener.name.{listener}.ssl.truststore.location"] = str(trusted)
    return dict(own) | made


@pytest.fixture(scope="module")
def sides(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Side]]:
    authority = Authority()
    started: list[RealKafka | OttlaNode] = []
    found = []
    try:
        for name in ("kafka", "ottla"):
            directory = tmp_path_factory.mktemp(name)
            ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
            kafka = RealKafka(directory)
            kafka.properties = properties(directory, authority, ports, kafka)
            if name == "kafka":
                started.append(kafka.start())
            else:
                kafka.prepare()
                started.append(OttlaNode.in_place_of(kafka).start())
            found.append(Side(name, directory, authority, ports, kafka.bootstrap))
        yield found
    finally:
        for each in started:
            each.stop()


def try_login(
    side: Side, listener: str, user: str, password: str, tls: ssl.SSLContext | None = None
) -> tuple[object, ...]:
    """The codes of the handshake and of the login, and its message; nothing if the connection was closed."""
    try:
        with RawConnection(side.at(listener), tls=tls) as connection:
            begun: Any = connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            message = f"\0{user}\0{password}".encode()
            answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)
            return begun.error_code, answer.error_code, answer.error_message or ""
    except (Closed, ssl.SSLError, ConnectionError):
        return ()


def test_only_the_jaas_line_of_the_mechanism_counts(sides: list[Side]) -> None:
    """Those without a mechanism know mallory, and another password of the node. Each node runs, so it logs in to its
    controller with the line of the mechanism, too.
    """
    for side in sides:
        assert try_login(side, "PASSWORDS", "alice", "right")[:2] == (0, 0), side.name
        refused = try_login(side, "PASSWORDS", "mallory", "right")
        assert refused == (0, 58, "Authentication failed: Invalid username or password"), side.name


def test_certificates_besides_passwords(sides: list[Side]) -> None:
    """`ssl.client.auth` of the whole node holds for SSL, and for SASL_SSL only with the prefix of the listener."""
    for side in sides:
        assert try_login(side, "SECURE", "alice", "right", side.context())[:2] == (0, 0), side.name
        assert try_login(side, "MUTUAL", "alice", "right", side.context()) == (), side.name
        assert try_login(side, "MUTUAL", "alice", "right", side.context("alice"))[:2] == (0, 0), side.name
        assert try_login(side, "TLS", "alice", "right", side.context()) == (), side.name


def test_the_text_of_a_failure_says_whether_it_was_the_first_time(sides: list[Side]) -> None:
    salt = b"salt of a test"
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="bob",
        mechanism=int(ScramMechanism.SHA_256),
        iterations=4096,
        salt=salt,
        salted_password=salted_password("right", salt, 4096, ScramMechanism.SHA_256),
    )
    handshake = SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    because = "due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    for side in sides:
        with RawConnection(side.bootstrap) as admin:
            answer: Any = admin.call(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]), 0)
            assert answer.results[0].error_code == 0, side.name

        def first_time(password: str, side: Side = side) -> tuple[RawConnection, Any]:
            connection = RawConnection(side.at("PASSWORDS"))
            connection.call(handshake, 1)
            return connection, send_scram(connection, "bob", password)

        refused, failed = first_time("wrong")
        assert failed.error_message == f"Authentication failed during authentication {because}", side.name
        refused.close()

        def known(side: Side = side) -> RawConnection | None:
            """Kafka's credentials follow the metadata a moment later."""
            connection, answer = first_time("right", side)
            return connection if answer.error_code == 0 else connection.close()

        connection = until(known, lambda found: found is not None)
        assert connection is not None
        # Kafka takes no second handshake in the first second.
        until(lambda connection=connection: connection.call(handshake, 1).error_code, lambda code: code == 0)  # type: ignore[misc]
        failed = send_scram(connection, "bob", "wrong")
        assert failed.error_message == f"Authentication failed during re-authentication {because}", side.name
        connection.close()


def test_without_the_line_of_the_mechanism_no_node_starts(tmp_path: Path, java_tools: None) -> None:
    line = f'{PLAIN_LOGIN} username="node" password="right" user_node="right";'
    made = RealKafka(tmp_path)
    made.properties |= {
        "listeners": made.properties["listeners"].replace("PLAINTEXT://", "SASL_PLAINTEXT://"),
        "advertised.listeners": made.properties["advertised.listeners"].replace("PLAINTEXT://", "SASL_PLAINTEXT://"),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": line,
        "listener.name.sasl_plaintext.sasl.jaas.config": line,
    }
    with pytest.raises(AssertionError, match="Kafka ended while starting"):
        made.start()
    missing = "Could not find a 'KafkaServer' or 'sasl_plaintext.KafkaServer' entry in the JAAS configuration"
    assert missing in made.log_path.read_text(errors="replace")
    with pytest.raises(AssertionError, match=r"sasl_plaintext.plain.sasl.jaas.config is not set, and PLAIN needs it"):
        OttlaNode.in_place_of(made).start()


NODE = ["localhost", "127.0.0.1"]
REFUSED = int(ErrorCode.INVALID_REQUEST)
BACK = None  # to what the properties file says
# What is written to `ssl.keystore.location` or `ssl.truststore.location` of a listener, in this order, and the answers.
# The names of files are those of `written`.
CHANGES: list[tuple[str, str, str | None, int]] = [
    *(
        (listener, store, value, REFUSED)
        for listener in ("tls", "internal", "loose")
        for store in ("keystore", "truststore")
        for value in ("/nowhere/store.pem", "nonsense", "")
    ),
    ("tls", "keystore", "renamed", REFUSED),
    ("tls", "keystore", "fewer", REFUSED),
    ("tls", "keystore", "stranger", 0),
    ("tls", "keystore", "more", 0),
    ("tls", "keystore", BACK, REFUSED),  # which has fewer names
    ("tls", "truststore", "others", 0),
    ("tls", "truststore", BACK, 0),
    ("internal", "keystore", "renamed", REFUSED),
    ("internal", "keystore", "fewer", REFUSED),
    ("internal", "keystore", "stranger", REFUSED),
    ("internal", "truststore", "others", REFUSED),
    ("internal", "keystore", "renewed", 0),
    ("internal", "keystore", BACK, 0),
    ("loose", "keystore", "renamed", 0),
    ("loose", "keystore", "fewer", 0),
    ("loose", "keystore", BACK, 0),
]


def written(side: Side) -> dict[str, str]:
    own, other = side.authority, Authority("another")
    stores = {
        "renewed": own.node(NODE),
        "renamed": own.node(NODE, common_name="renamed"),
        "fewer": own.node(["localhost"]),
        "more": own.node([*NODE, "node.example"]),
        "stranger": other.node(NODE),
    }
    nonsense = side.directory / "nonsense.pem"
    nonsense.write_text("nonsense")
    found = {name: str(each.write(side.directory, name)) for name, each in stores.items()}
    return found | {"nonsense": str(nonsense), "others": str(other.write(side.directory / "others.pem"))}


def shown(side: Side, listener: str) -> bytes:
    """The certificate that a listener shows, also to clients that it refuses later."""
    any_server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_server.check_hostname, any_server.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("localhost", side.ports[listener.upper()]))
    with any_server.wrap_socket(plain) as secured:
        certificate = secured.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


def test_changes_of_certificates(sides: list[Side]) -> None:
    for side in sides:
        paths = written(side)
        for listener, store, value, expected in CHANGES:
            name = f"listener.name.{listener}.ssl.{store}.location"
            path = paths.get(value or "", value)
            code, text = side.alter((name, path))
            assert code == expected, (side.name, name, path, text)
            if code == 0 and store == "keystore":  # Kafka takes it a moment later
                pem = Path(path or side.directory / f"{listener}.pem").read_bytes()
                wanted = x509.load_pem_x509_certificates(pem)[0].public_bytes(Encoding.DER)
                until(partial(shown, side, listener), lambda found, wanted=wanted: found == wanted)  # type: ignore[misc]


def test_changes_that_are_refused_change_nothing(sides: list[Side]) -> None:
    """Each with another one of the same request, and as a trial."""
    for side in sides:
        name = "listener.name.loose.ssl.keystore.location"
        before = shown(side, "loose")
        for dry in (True, False):
            code, _ = side.alter((name, "/nowhere/store.pem"), ("max.connections", "1000"), dry=dry)
            assert code == REFUSED, side.name
        store = str(side.authority.node().write(side.directory, "trial"))
        code, text = side.alter((name, store), dry=True)
        assert code == 0, (side.name, text)
        assert shown(side, "loose") == before


@pytest.mark.parametrize("name", ["principal.builder.class", "ssl.engine.factory.class"])
@pytest.mark.parametrize("prefix", ["", "listener.name.tls."])
def test_classes_that_do_not_exist(sides: list[Side], prefix: str, name: str) -> None:
    for side in sides:
        code, text = side.alter((prefix + name, "com.example.Mine"))
        assert (code, "com.example.Mine" in text) == (REFUSED, True), side.name
