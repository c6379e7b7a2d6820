"""A listener with SASL: real clients with every mechanism, the order of messages, failures, expiry, hostile clients."""

from __future__ import annotations

import asyncio
import struct
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from tests.server.security.secured import MODULES, PASSWORDS, SaslListeners, plain_jaas
from tests.support.logins import Logins
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.resources import Resource, ResourceType
from ottla.security.sasl.scram.client import ScramClient
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS
from ottla.server.security.peer_security import towards_brokers
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

Start = Callable[..., EmbeddedBroker]
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
METADATA = MetadataRequest(topics=[])
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PLAIN_LOGIN = f"{MODULES}.plain.PlainLoginModule"
SCRAM_LOGIN = f"{MODULES}.scram.ScramLoginModule"
PLAIN_LINE = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
SCRAM_LINE = "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config"


def _setting(name: str) -> str:
    """The name of a setting that was given as a Python name, or as it is."""
    return name if "." in name else name.replace("_", ".")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a node whose only listener has SASL."""
    started: list[EmbeddedBroker] = []

    def begin(sasl: SaslListeners | None = None, **settings: str) -> EmbeddedBroker:
        own = {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
            "connection.failed.authentication.delay.ms": "10",
        }
        chosen = own | {_setting(name): value for name, value in settings.items()}
        chosen = chosen if sasl is None else sasl.settings(chosen)
        started.append(EmbeddedBroker(tmp_path / "data", chosen).start())
        return started[-1]

    yield begin
    for broker in started:
        broker.stop()


def librdkafka(broker: EmbeddedBroker, user: str, password: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def add_user(broker: EmbeddedBroker, user: str, password: str, sasl: SaslListeners | None = None) -> None:
    """Create SCRAM credentials of both mechanisms, as librdkafka's admin client does."""
    tls = {} if sasl is None else {"security.protocol": sasl.protocol, **sasl.certificates.librdkafka()}
    admin = AdminClient(librdkafka(broker, "admin", PASSWORDS["admin"]) | tls)
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
        for outcome in admin.alter_user_scram_credentials([change]).values():
            outcome.result(WAIT_S)


def offset_of_record(settings: dict[str, str]) -> int:
    """Write a record with librdkafka."""
    sent: list[Any] = []
    producer = confluent_kafka.Producer(settings)
    producer.produce("t", b"x", callback=lambda error, message: sent.append((error, message)))
    assert producer.flush(WAIT_S) == 0
    ((error, message),) = sent
    assert error is None
    return int(message.offset())


def principals(broker: EmbeddedBroker) -> set[str]:
    assert broker.node is not None
    return {str(each.context.principal) for each in broker.node.connections.connections}


def begin(connection: RawConnection, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return connection.call(SaslHandshakeRequest(mechanism=mechanism), version)


def send_plain(connection: RawConnection, user: str, password: str) -> Any:
    message = f"\0{user}\0{password}".encode()
    return connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)


def log_in(connection: RawConnection, user: str = "alice") -> Any:
    assert begin(connection).error_code == 0
    answer = send_plain(connection, user, PASSWORDS[user])
    assert answer.error_code == 0
    return answer


def is_closed(connection: RawConnection, request: Request[Response], version: int) -> bool:
    try:
        connection.call(request, version)
    except (Closed, ConnectionError):
        return True
    return False


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_users_of_the_cluster(start: Start, mechanism: str) -> None:
    broker = start()
    add_user(broker, "carol", "sécret, with=signs")
    assert offset_of_record(librdkafka(broker, "carol", "sécret, with=signs", mechanism)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its messages in an old way
        import kafka
    python = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="carol",
        sasl_plain_password="sécret, with=signs",
    )
    assert python.send("t", b"x").get(WAIT_S).offset == 1
    assert "User:carol" in principals(broker)
    python.close()

    async def write() -> int:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="carol",
            sasl_plain_password="sécret, with=signs",
        )
        await producer.start()
        try:
            return int((await producer.send_and_wait("t", b"x")).offset)
        finally:
            await producer.stop()

    assert asyncio.run(write()) == 2


def test_a_plain_user(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = Logins(monkeypatch)
    broker = start()
    assert offset_of_record(librdkafka(broker, "alice", PASSWORDS["alice"])) == 0
    assert logins.principals == {"User:alice"}


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_wrong_passwords_and_unknown_users_look_alike(start: Start, mechanism: str, user: str) -> None:
    broker = start()
    if mechanism != "PLAIN":
        add_user(broker, "alice", "right")
    errors: list[Any] = []
    settings: dict[str, Any] = librdkafka(broker, user, "wrong", mechanism) | {"error_cb": errors.append}
    producer = confluent_kafka.Producer(settings)
    producer.poll(0)
    until(lambda: producer.poll(0.1), lambda _: errors)
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION
    text = f"invalid credentials with SASL mechanism {mechanism}"
    if mechanism == "PLAIN":
        text = "Invalid username or password"
    assert text in errors[0].str()
    assert "User:alice" not in principals(broker)


def test_little_is_served_before_authentication(start: Start) -> None:
    broker = start()
    with RawConnection(broker.bootstrap) as connection:
        assert connection.call(HELLO, 3).error_code == 0
        assert is_closed(connection, METADATA, 12)
    with RawConnection(broker.bootstrap) as connection:
        answer = begin(connection, "GSSAPI")
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN", *SCRAM])
        assert is_closed(connection, HELLO, 3)
    with RawConnection(broker.bootstrap) as connection:
        assert send_plain(connection, "alice", PASSWORDS["alice"]).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert is_closed(connection, HELLO, 3)
    with RawConnection(broker.bootstrap) as connection:
        begin(connection)
        assert begin(connection).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert is_closed(connection, HELLO, 3)
    with RawConnection(broker.bootstrap) as connection:
        assert begin(connection).error_code == 0
        assert is_closed(connection, METADATA, 12)
    with RawConnection(broker.bootstrap) as connection:
        log_in(connection)
        assert connection.call(METADATA, 12).brokers


@pytest.mark.parametrize("failure", ["PLAIN", "SCRAM-SHA-256", "a mechanism that is not there", "no handshake", "two"])
def test_failures_are_answered_late(start: Start, failure: str) -> None:
    """After `connection.failed.authentication.delay.ms`; others do not wait for it."""
    broker = start(connection_failed_authentication_delay_ms="500")
    with RawConnection(broker.bootstrap) as connection, RawConnection(broker.bootstrap) as other:
        if failure in ("PLAIN", "SCRAM-SHA-256", "two"):
            assert begin(connection, "PLAIN" if failure == "two" else failure).error_code == 0
        sent_s = time.monotonic()
        if failure == "SCRAM-SHA-256":
            answer = send_scram(connection, "nobody", "wrong")
        elif failure in ("PLAIN", "no handshake"):
            answer = send_plain(connection, "alice", "wrong")
        else:
            answer = begin(connection, "PLAIN" if failure == "two" else "GSSAPI")
        assert answer.error_code != 0
        assert time.monotonic() - sent_s > 0.45, "a lower bound: a slow machine only makes it longer"
        log_in(other)
        assert is_closed(connection, HELLO, 3)


def test_frames_are_small_before_authentication(start: Start) -> None:
    broker = start(sasl_server_max_receive_size="1000")
    with RawConnection(broker.bootstrap) as connection:
        connection.send(struct.pack(">i", 1_001))
        with pytest.raises(Closed):
            connection.receive()
    with RawConnection(broker.bootstrap) as connection:
        log_in(connection)
        topics = [MetadataRequest.Topic(name=f"topic-{number}") for number in range(1_000)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        assert len(connection.call(request, 9).topics) == 1_000  # type: ignore[attr-defined]


def test_whoever_does_not_authenticate_is_disconnected(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AUTHENTICATION_S", 0.3)
    broker = start()
    with RawConnection(broker.bootstrap) as connection, RawConnection(broker.bootstrap) as other:
        log_in(other)
        with pytest.raises(Closed):
            connection.receive()
        assert other.call(METADATA, 12).brokers


def test_frames_without_a_login_share_little_memory(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that stop before the end of a frame make room for others, and do not touch the memory of known clients."""
    monkeypatch.setattr(limits, "UNPROVEN_REQUEST_BYTES_MAX", limits.MIB)
    broker = start()
    assert broker.node is not None
    door = broker.node.connections
    size_bytes = 400_000
    unfinished = struct.pack(">i", size_bytes) + b"\0" * (size_bytes - 1)
    with RawConnection(broker.bootstrap) as known:
        log_in(known)
        hostile = [RawConnection(broker.bootstrap, source="127.0.1.1") for _ in range(8)]
        for each in hostile:
            each.send(unfinished)
        with pytest.raises(Closed):
            hostile[0].receive()  # the oldest one
        assert door.memory.used_bytes == 0
        assert door.unproven.memory.used_bytes <= limits.MIB + size_bytes
        with RawConnection(broker.bootstrap) as connection:
            log_in_with_a_large_token(connection, 300_000)
        assert known.call(METADATA, 12).brokers
        for each in hostile:
            each.close()
        until(lambda: door.unproven.memory.used_bytes, lambda used: used == 0)
        assert door.memory.used_bytes == 0


def log_in_with_a_large_token(connection: RawConnection, size_bytes: int) -> None:
    """It is refused, but read and answered."""
    begin(connection)
    answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=b"\0" * size_bytes), 2)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_memory_of_a_login_is_counted_once(start: Start) -> None:
    """A large frame with the login, and with what follows it."""
    broker = start()
    assert broker.node is not None
    door = broker.node.connections
    topics = [MetadataRequest.Topic(name=f"topic-{number:0200}") for number in range(2_000)]
    with RawConnection(broker.bootstrap) as connection:
        begin(connection)
        login = SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORDS['alice']}".encode())
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        connection.send(request_frame(login, 2, 2, "raw") + request_frame(request, 9, 3, "raw"))
        connection.receive()
        connection.receive()
        (mine,) = door.connections
        assert mine._inbound._memory is door.memory
    until(lambda: not door.connections)
    assert (door.memory.used_bytes, door.unproven.memory.used_bytes) == (0, 0)


def test_silent_clients_without_a_login_keep_nobody_out(start: Start) -> None:
    broker = start(max_connections="24")
    with RawConnection(broker.bootstrap) as known:
        log_in(known)
        silent = [RawConnection(broker.bootstrap, source="127.0.1.1") for _ in range(23)]
        assert broker.node is not None
        door = broker.node.connections
        until(lambda: len(door.connections), lambda count: count == 24)
        with RawConnection(broker.bootstrap) as connection:
            log_in(connection)
            assert connection.call(METADATA, 12).brokers
            with pytest.raises(Closed):
                silent[0].receive()  # the oldest one
            assert known.call(METADATA, 12).brokers
            assert len(door.connections) == 24
        for each in silent:
            each.close()


def test_a_few_without_a_login_are_given_some_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNPROVEN_PATIENCE_S", 10 * WAIT_S)
    broker = start(max_connections="2")
    assert broker.node is not None
    door = broker.node.connections
    with RawConnection(broker.bootstrap) as first, RawConnection(broker.bootstrap) as second:
        until(lambda: len(door.connections), lambda count: count == 2)
        assert door.full
        monkeypatch.setattr(limits, "UNPROVEN_PATIENCE_S", 0.0)
        assert not door.full
        log_in(second)
        log_in(first)
        assert door.full, "both have authenticated"


def test_messages_without_a_kafka_header(start: Start) -> None:
    """SaslHandshake version 0, as old clients send it."""
    broker = start()
    with RawConnection(broker.bootstrap) as connection:
        assert begin(connection, version=0).error_code == 0
        message = f"\0alice\0{PASSWORDS['alice']}".encode()
        connection.send(struct.pack(">i", len(message)) + message)
        assert connection.receive() == b""
        assert connection.call(METADATA, 12).brokers
        assert principals(broker) == {"User:alice"}
    with RawConnection(broker.bootstrap) as connection:
        begin(connection, version=0)
        connection.send(struct.pack(">i", 4) + b"\0a\0b")
        with pytest.raises(Closed):  # an empty frame, as it would be, says that the password is right
            connection.receive()


def test_an_identity_expires_and_is_proven_again(start: Start, sasl: SaslListeners) -> None:
    broker = start(sasl, connections_max_reauth_ms="1500")
    with sasl.connect(broker.bootstrap) as renewed, sasl.connect(broker.bootstrap) as forgotten:
        assert log_in(renewed).session_lifetime_ms == 1_500
        log_in(forgotten)
        log_in(renewed)  # the time begins anew
        assert renewed.call(METADATA, 12).brokers
        until(lambda: is_closed(forgotten, METADATA, 12))
    with sasl.connect(broker.bootstrap) as connection:
        log_in(connection)
        assert broker.node is not None
        (mine,) = until(lambda: list(broker.node.connections.connections), lambda all: len(all) == 1)  # type: ignore[union-attr]
        assert mine._inbound.max_frame_bytes > 524_288
        until(lambda: mine._inbound.max_frame_bytes, lambda size_bytes: size_bytes == 524_288)  # as before the login
    with sasl.connect(broker.bootstrap) as connection:
        log_in(connection, "alice")
        begin(connection)
        assert send_plain(connection, "admin", PASSWORDS["admin"]).error_code == 58, "nobody becomes somebody else"
        assert is_closed(connection, METADATA, 12)


def send_scram(connection: RawConnection, user: str, password: str) -> Any:
    """The last answer of an exchange with SCRAM-SHA-256."""
    client = ScramClient(SCRAM_MECHANISMS["SCRAM-SHA-256"], user, password, "nonce")
    message: bytes | None = client.first()
    while message is not None:
        answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)
        if answer.error_code != 0:
            return answer
        message = client.respond(bytes(answer.auth_bytes))
    return answer


def test_a_failure_says_whether_it_was_the_first_time(start: Start, sasl: SaslListeners) -> None:
    broker = start(sasl, connections_max_reauth_ms="60000")
    add_user(broker, "carol", "right", sasl)
    because = "due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    with sasl.connect(broker.bootstrap) as connection:
        begin(connection, "SCRAM-SHA-256")
        answer = send_scram(connection, "carol", "wrong")
        assert answer.error_message == f"Authentication failed during authentication {because}"
    with sasl.connect(broker.bootstrap) as connection:
        begin(connection, "SCRAM-SHA-256")
        assert send_scram(connection, "carol", "right").error_code == 0
        begin(connection, "SCRAM-SHA-256")
        answer = send_scram(connection, "carol", "wrong")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == f"Authentication failed during re-authentication {because}"
        assert is_closed(connection, METADATA, 12)


def test_a_user_who_was_removed_cannot_log_in_on_an_older_connection(start: Start) -> None:
    broker = start()
    with RawConnection(broker.bootstrap) as connected, RawConnection(broker.bootstrap) as silent:
        log_in(connected)
        others = plain_jaas(users={name: word for name, word in PASSWORDS.items() if name != "alice"})
        security = librdkafka(broker, "admin", PASSWORDS["admin"])
        with Blocking(security.pop("bootstrap.servers"), security=security) as client:
            client.admin.configs.set(Resource(ResourceType.BROKER, "1"), {PLAIN_LINE: others})
        for connection in (connected, silent):
            begin(connection)
            assert send_plain(connection, "alice", PASSWORDS["alice"]).error_code == 58


def test_librdkafka_authenticates_again_by_itself(start: Start) -> None:
    broker = start(connections_max_reauth_ms="1000")
    producer = confluent_kafka.Producer(librdkafka(broker, "alice", PASSWORDS["alice"]))
    errors: list[Any] = []
    assert broker.node is not None
    for _ in range(8):
        producer.produce("t", b"x", callback=lambda error, _: errors.append(error) if error else None)
        assert producer.flush(WAIT_S) == 0
        producer.poll(0.4)
    assert errors == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"sasl_enabled_mechanisms": "DIGEST-MD5"}, "DIGEST-MD5 is not served"),
        ({"sasl_enabled_mechanisms": ""}, "sasl.enabled.mechanisms is empty"),
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": "nonsense"}, "control flag"),
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": ""}, "is not set, and PLAIN needs it"),
        ({SCRAM_LINE: f"{SCRAM_LOGIN} required"}, "scram-sha-512.sasl.jaas.config: .* does not end with a semicolon"),
        ({SCRAM_LINE: "org.example.Nobody required;"}, "module of SCRAM-SHA-512 is .*ScramLoginModule, not 'org.ex"),
        ({SCRAM_LINE: plain_jaas()}, "the login module of SCRAM-SHA-512 is .*ScramLoginModule, not .*PlainLogin"),
        ({SCRAM_LINE: f'{SCRAM_LOGIN} required usernam="a" password="p";'}, "no option 'usernam', did you mean usern"),
        ({PLAIN_LINE: f'{PLAIN_LOGIN} required usr_alice="p";'}, "no option 'usr_alice', did you mean user_NAME"),
        (
            {
                SCRAM_LINE: f'{SCRAM_LOGIN} required username="a";',
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            },
            "the node logs in to others with SCRAM-SHA-512, and .* lacks password",
        ),
    ],
)
def test_a_node_does_not_start_with_wrong_sasl_settings(start: Start, settings: dict[str, str], problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        start(**settings)


@pytest.mark.parametrize("name", ["sasl.jaas.config", "listener.name.sasl_plaintext.sasl.jaas.config"])
def test_a_jaas_line_without_a_mechanism_is_ignored(start: Start, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """As with Kafka: who is only in such a line cannot log in, and the log says so."""
    mallory = plain_jaas("mallory", {"mallory": "right"})
    with pytest.raises(ApiError, match=f"{PLAIN_LINE} is not set, and PLAIN needs it"):
        start(**{name: mallory, PLAIN_LINE: ""})
    assert f"{name} is ignored, as Kafka ignores it" in caplog.text
    assert f"the name {PLAIN_LINE}" in caplog.text
    assert "right" not in caplog.text
    node = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    found = towards_brokers(NodeConfig(node | {name: mallory, PLAIN_LINE: plain_jaas()}))
    assert found is not None and found.sasl is not None and found.sasl.username == "admin"
    with pytest.raises(ApiError, match="PLAIN needs a user and a password"):
        towards_brokers(NodeConfig(node | {name: mallory}))


def test_no_secret_is_logged(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    broker = start()
    with RawConnection(broker.bootstrap) as connection:
        begin(connection)
        send_plain(connection, "alice", "not-the-password")
    with RawConnection(broker.bootstrap) as connection:
        log_in(connection)
    assert "did not authenticate" in caplog.text
    assert not [each for each in (*PASSWORDS.values(), "not-the-password") if each in caplog.text]
    assert MODULES not in caplog.text
