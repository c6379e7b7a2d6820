"""Attacks on secured listeners: the node goes on, serves honest clients, keeps no memory and logs no traceback."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import warnings
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, UserScramCredentialUpsertion
from confluent_kafka.admin import ScramMechanism as Kind
from tests.client.security.servers import Handshakes, server_context
from tests.security.tokens import jwk, jwks, rsa_key
from tests.server.security.oauth_settings import AUDIENCE, ISSUER, LOGIN, message, present, signed
from tests.server.security.secured import PASSWORDS, SASL_PROTOCOLS, Certificates, log_in, plain_jaas
from tests.support.ports import free_ports
from tests.support.processes.kafka import SINGLE_NODE
from tests.support.processes.node import OttlaNode
from tests.support.requests.before_login import answered_before_login
from tests.support.requests.fuzzing import (
    HELLO,
    MESSAGES,
    METADATA,
    chance,
    damaged,
    noise,
    odd_frame,
    second_flight,
)
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S

from ottla.model.errors import ErrorCode
from ottla.security.sasl.scram.client import ScramClient
from ottla.security.sasl.scram.credentials import ScramMechanism
from ottla.server.api.api_table import SERVED
from ottla.wire.frame import request_frame
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

HALF_OPEN = 2_000
GROWTH_BYTES = 64 << 20
IS_OVER = (Closed, OSError, AssertionError)


class Target:
    """A node with a listener of TLS, one of SASL, and one of both."""

    def __init__(self, directory: Path) -> None:
        self.certificates = Certificates.make(directory / "certificates")
        self.ports = dict(zip(("SSL", "SASL_PLAINTEXT", "SASL_SSL", "CONTROLLER"), free_ports(4), strict=True))
        listeners = ",".join(f"{name}://{self.at(name)}" for name in self.ports)
        keys = directory / "jwks.json"
        keys.write_text(jwks(jwk(rsa_key(), kid="one", use="sig", alg="RS256")))
        settings = SINGLE_NODE | {
            "listeners": listeners,
            "advertised.listeners": listeners.rpartition(",")[0],
            "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in self.ports).replace(
                "CONTROLLER:CONTROLLER", "CONTROLLER:SSL"
            ),
            "inter.broker.listener.name": "SSL",
            "controller.quorum.voters": f"1@{self.at('CONTROLLER')}",
            "listener.name.ssl.ssl.client.auth": "requested",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "connection.failed.authentication.delay.ms": "1",
            "log.dirs": str(directory / "data"),
        }
        for name in ("sasl_plaintext", "sasl_ssl"):
            settings[f"listener.name.{name}.plain.sasl.jaas.config"] = plain_jaas()
            settings[f"listener.name.{name}.oauthbearer.sasl.jaas.config"] = f"{LOGIN};"
        settings |= self.certificates.node()
        path = directory / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.node = OttlaNode.on_file(path, directory / "data", self.ports["SSL"])
        self.log = directory / "ottla.err"

    def at(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def connect(self, listener: str) -> RawConnection:
        return RawConnection(self.at(listener), tls=self.certificates.context if "SSL" in listener else None)

    def resident_bytes(self) -> int:
        line = next(each for each in Path(f"/proc/{self.node.pid}/status").read_text().splitlines() if "VmRSS" in each)
        return int(line.split()[1]) << 10

    def librdkafka(self) -> dict[str, Any]:
        credentials = {"sasl.mechanisms": "PLAIN", "sasl.username": "alice", "sasl.password": PASSWORDS["alice"]}
        settings = {"bootstrap.servers": self.at("SASL_SSL"), "security.protocol": "SASL_SSL", "log_level": "0"}
        return settings | credentials | self.certificates.librdkafka()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    target = Target(tmp_path_factory.mktemp("target"))
    target.node.start()
    yield target
    target.node.stop()


@pytest.fixture
def target(running: Target) -> Iterator[Target]:
    """The node, which serves honest clients after the attack as well as before."""
    honest = confluent_kafka.Producer(running.librdkafka())
    write(honest)
    before = running.resident_bytes()
    yield running
    write(honest)
    with running.connect("SASL_SSL") as connection:
        assert log_in(connection, "alice").call(METADATA, 12).brokers  # type: ignore[attr-defined]
    text = running.log.read_text()
    assert "Traceback" not in text and " ERROR " not in text, text[-6_000:]
    assert running.resident_bytes() < before + GROWTH_BYTES


def write(producer: confluent_kafka.Producer) -> None:
    failures: list[object] = []
    producer.produce("t", b"x", on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(WAIT_S) == 0
    assert not failures


def drain(connection: RawConnection, timeout_s: float = 0.05) -> None:
    """Take what comes, briefly."""
    connection._socket.settimeout(timeout_s)
    with suppress(*IS_OVER):
        connection.receive()


@pytest.mark.parametrize("listener", SASL_PROTOCOLS)
@pytest.mark.parametrize("state", ["at first", "after SaslHandshake"])
def test_nothing_but_a_login_is_served_before_authentication(target: Target, listener: str, state: str) -> None:
    """Every API but the three of a login, in its oldest and newest version: closed without a byte of an answer."""
    begun = SaslHandshakeRequest(mechanism="SCRAM-SHA-256") if state == "after SaslHandshake" else None
    assert answered_before_login(lambda: target.connect(listener), SERVED, begun) == []


@pytest.mark.parametrize("listener", SASL_PROTOCOLS)
def test_random_orders_and_damaged_frames(target: Target, listener: str) -> None:
    rng, messages = chance("orders"), (*MESSAGES, message(signed()))
    for _ in range(150):
        with suppress(*IS_OVER), target.connect(listener) as connection:
            for number in range(rng.randrange(1, 6)):
                connection.send(odd_frame(rng, number, messages))
            drain(connection)


@pytest.mark.parametrize("listener", SASL_PROTOCOLS)
def test_random_order_never_lets_anybody_in(target: Target, listener: str) -> None:
    """Whatever is said before: without a password, Metadata is not answered."""
    rng, messages = chance("nobody gets in"), (*MESSAGES, *map(message, tokens_that_are_refused()))
    for _ in range(60):
        with target.connect(listener) as connection:
            with suppress(*IS_OVER):
                for number in range(rng.randrange(1, 5)):
                    connection.send(odd_frame(rng, number, messages))
            answered = None
            with suppress(*IS_OVER, struct.error, IndexError, ValueError):
                connection._socket.settimeout(0.05)
                connection.send(request_frame(METADATA, 12, 4711, "fuzz"))
                while True:
                    frame = connection.receive()
                    if frame[:4] == struct.pack(">i", 4711):
                        answered = frame
            assert answered is None


def tokens_that_are_refused() -> list[str]:
    """One whose time is over, one of another key, and one of somebody else's."""
    return [signed(ahead_s=-7_200), signed(key=rsa_key(1)), signed(iss="https://other.test")]


@pytest.mark.parametrize("listener", SASL_PROTOCOLS)
def test_damage_makes_no_token_valid(target: Target, listener: str) -> None:
    """Tokens that are refused, damaged at any place, and what a client may say after the refusal."""
    rng, tokens = chance("tokens"), tokens_that_are_refused()
    for _ in range(150):
        bearer = rng.choice(tokens)
        with target.connect(listener) as connection:
            said = damaged(message(bearer), rng) if rng.random() < 0.9 else message(bearer)
            answer: Any = present(connection, said)
            assert (answer.error_code, answer.auth_bytes) != (0, b""), said
            if answer.error_code == 0:
                follows = rng.choice((b"\x01", b"", noise(rng), message(bearer)))
                answer = connection.call(SaslAuthenticateRequest(auth_bytes=follows), 2)
                assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            with pytest.raises(IS_OVER):
                connection.call(METADATA, 12)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS 1.2", "TLS 1.3"])
def test_damaged_certificates_of_clients(target: Target, version: ssl.TLSVersion) -> None:
    """The client's second flight, with its certificate and the proof of its key, damaged at any place."""
    rng, context = chance("certificates"), target.certificates.context
    context.minimum_version = context.maximum_version = version
    for _ in range(60):
        with suppress(*IS_OVER), RawConnection(target.at("SSL")) as connection:
            connection.send(damaged(second_flight(connection._socket, context), rng))
            drain(connection, 0.01)


def test_truncated_and_damaged_tls_records(target: Target) -> None:
    """A client's real handshake, cut off or damaged at any place."""
    rng = chance("records")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        target.certificates.context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    hello = outgoing.read()
    for _ in range(200):
        data = bytearray(hello)
        if rng.random() < 0.5:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            del data[rng.randrange(len(data)) :]
        with suppress(*IS_OVER), RawConnection(target.at("SSL")) as connection:
            connection.send(bytes(data) + noise(rng))
            if rng.random() < 0.3:
                drain(connection, 0.01)


def test_damaged_records_after_the_handshake(target: Target) -> None:
    rng = chance("records after the handshake")
    for _ in range(40):
        with target.connect("SSL") as connection:
            assert connection.call(HELLO, 3)
            raw = socket.socket(fileno=connection._socket.detach())
            with raw, suppress(OSError):
                kind = rng.choice((0x14, 0x15, 0x16, 0x17, 0xFF))
                length = rng.choice((0, 10, 16_384, 65_535))
                raw.sendall(struct.pack(">BHH", kind, 0x0303, length) + noise(rng))
                raw.settimeout(0.02)
                raw.recv(1_000)


def test_thousands_of_half_open_handshakes(target: Target) -> None:
    """Honest clients go on meanwhile; each address has a bounded number of handshakes, and honest ones have another."""
    honest = confluent_kafka.Producer(target.librdkafka())
    write(honest)
    half_open: list[socket.socket] = []
    try:
        for number in range(HALF_OPEN):
            source = (f"127.1.{number >> 8 & 255}.{number % 3 + 1}", 0)
            with suppress(OSError):
                each = socket.create_connection(("127.0.0.1", target.ports["SSL"]), 0.02, source_address=source)
                each.sendall(b"\x16\x03\x01")
                half_open.append(each)
            if number % 200 == 0:
                write(honest)
        write(honest)
        descriptors = len(list(Path(f"/proc/{target.node.pid}/fd").iterdir()))
        assert descriptors < HALF_OPEN, "only a bounded number of handshakes is under way"
    finally:
        for each in half_open:
            each.close()


def test_renegotiation_is_refused(target: Target) -> None:
    """A second ClientHello in a connection of TLS 1.2, as OpenSSL's own client sends it on the line `R`."""
    command = ["openssl", "s_client", "-connect", target.at("SSL"), "-tls1_2", "-CAfile", target.certificates.trusted]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as client:
        out, _ = client.communicate("R\n", timeout=WAIT_S)
    assert "RENEGOTIATING" in out
    assert "no renegotiation" in out.lower() or "ssl alert" in out.lower(), out[-1_000:]


# What a client offers, as words of OpenSSL's own client, and the version and the suites of a server that takes it.
DOWNGRADES = {
    "TLS 1.0": (["-tls1", "-cipher", "ALL:@SECLEVEL=0"], ssl.TLSVersion.TLSv1, "ALL:@SECLEVEL=0"),
    "TLS 1.1": (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0"),
    "no encryption": (
        ["-tls1_2", "-cipher", "ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0"],
        ssl.TLSVersion.TLSv1_2,
        "eNULL:@SECLEVEL=0",
    ),
    "no certificate": (["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"], ssl.TLSVersion.TLSv1_2, "aNULL:@SECLEVEL=0"),
    "a fallback": (["-tls1_2", "-fallback_scsv"], ssl.TLSVersion.TLSv1_2, "DEFAULT"),
}


def s_client(bootstrap: str, words: list[str]) -> tuple[bool, str]:
    """Whether OpenSSL's client gets through its handshake, and what it says."""
    command = ["openssl", "s_client", "-connect", bootstrap, *words]
    done = subprocess.run(command, input="Q\n", capture_output=True, text=True, timeout=WAIT_S)
    said = done.stdout + done.stderr
    return "Cipher is" in said and "Cipher is (NONE)" not in said, said


@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL", "CONTROLLER"])
@pytest.mark.parametrize("downgrade", DOWNGRADES)
def test_a_downgrade_is_refused(target: Target, downgrade: str, listener: str) -> None:
    """Old versions, suites without encryption or without a certificate, and the mark of a client that somebody in the
    middle has made to fall back to an older version."""
    words, _, _ = DOWNGRADES[downgrade]
    agreed, said = s_client(target.at(listener), words)
    assert not agreed, said[-2_000:]
    assert "alert" in said, said[-2_000:]


@pytest.mark.parametrize("downgrade", DOWNGRADES)
def test_the_downgrades_work_with_a_server_that_takes_them(target: Target, downgrade: str) -> None:
    """So it is the node that refuses them, not the client."""
    words, version, suites = DOWNGRADES[downgrade]
    permissive = server_context(target.certificates.authority.server())
    permissive.set_ciphers(suites)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of old versions
        permissive.minimum_version = permissive.maximum_version = version
    with Handshakes(permissive) as server:
        agreed, said = s_client(f"127.0.0.1:{server.port}", words)
    assert agreed, said[-2_000:]


def conversation(connection: RawConnection, messages: list[bytes]) -> list[int]:
    """Send recorded messages of SCRAM, and return the error codes of the answers."""
    begun: Any = connection.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    assert begun.error_code == 0
    answers: list[Any] = [connection.call(SaslAuthenticateRequest(auth_bytes=each), 2) for each in messages]
    return [each.error_code for each in answers]


def test_scram_replay_and_wrong_nonces(target: Target) -> None:
    change = UserScramCredentialUpsertion("carol", ScramCredentialInfo(Kind.SCRAM_SHA_256, 4096), b"secret")
    admin = AdminClient(target.librdkafka())
    for outcome in admin.alter_user_scram_credentials([change]).values():
        outcome.result(WAIT_S)
    recorded: list[bytes] = []
    client = ScramClient(ScramMechanism.SHA_256, "carol", "secret", "a-nonce-of-the-client", None)
    with target.connect("SASL_PLAINTEXT") as connection:
        connection.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        said: bytes | None = client.first()
        while said is not None:
            recorded.append(said)
            answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=said), 2)
            assert answer.error_code == 0
            said = client.respond(bytes(answer.auth_bytes))
        assert connection.call(METADATA, 12).brokers  # type: ignore[attr-defined]
    assert len(recorded) == 2
    first, final = recorded
    proof = final.rpartition(b",p=")[2]
    for second in (final, b"c=biws,r=a-nonce-of-the-client,p=" + proof, b"c=biws,r=,p=" + b64encode(bytes(32))):
        with target.connect("SASL_PLAINTEXT") as connection:
            assert conversation(connection, [first, second]) == [0, ErrorCode.SASL_AUTHENTICATION_FAILED]
            with pytest.raises(IS_OVER):
                connection.call(METADATA, 12)


def test_a_flood_of_logins_that_fail(target: Target) -> None:
    connections = [target.connect("SASL_PLAINTEXT") for _ in range(100)]
    for each in connections:
        login = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
        each.send(request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "x") + request_frame(login, 2, 2, "x"))
    for each in connections:
        with each, suppress(Closed):
            assert [each.receive() for _ in range(3)] == [], "it is closed after two answers"
