"""Proofs of who a client is: a real Kafka and Ottla accept the same tokens, and let nobody become somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.security.tokens import ec_key, jwk, jwks, rsa_key
from tests.server.security.oauth_settings import AUDIENCE, ISSUER, LOGIN, claims, message, present, signed
from tests.server.security.secured import MODULES, PASSWORDS, plain_jaas
from tests.server.security.test_oauth_listener import ATTACKS
from tests.server.security.test_sasl_listener import begin, send_plain, send_scram
from tests.support.ports import free_ports
from tests.support.processes.kafka import BROKER, RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.model.errors import ErrorCode
from ottla.security.sasl.scram.credentials import ScramMechanism, salted_password
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

MECHANISMS = "PLAIN,SCRAM-SHA-256,OAUTHBEARER"
METADATA = MetadataRequest(topics=[])
# Tokens that both accept, among them some that are almost not valid.
GOOD = {
    "RS256": lambda: signed(),
    "PS256": lambda: signed("any", algorithm="PS256"),
    "ES256": lambda: signed("curve", ec_key(), "ES256"),
    "several audiences": lambda: signed(aud=["other", AUDIENCE]),
    "expired within the clock skew": lambda: signed(exp=claims(-20)["iat"], iat=claims(-60)["iat"]),
    "valid soon, within the clock skew": lambda: signed(nbf=claims(20)["iat"]),
    "scopes": lambda: signed(scope=["a", "b"]),
}
VALIDATOR = f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"


class Side(NamedTuple):
    name: str
    place: str

    def connect(self) -> RawConnection:
        return RawConnection(self.place)


@pytest.fixture(scope="module")
def sides(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Side]]:
    keys = tmp_path_factory.mktemp("keys") / "jwks.json"
    known = (jwk(rsa_key(), kid="one", alg="RS256"), jwk(rsa_key(), kid="any"), jwk(ec_key(), kid="curve"))
    keys.write_text(jwks(*known))
    started: list[RealKafka | OttlaNode] = []
    found = []
    try:
        for name in ("kafka", "ottla"):
            (port,) = free_ports(1)
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
            kafka = RealKafka(tmp_path_factory.mktemp(name), jvm_options=(*BROKER, allowed))
            kafka.properties |= properties(kafka, keys, f"127.0.0.1:{port}")
            if name == "kafka":
                started.append(kafka.start())
            else:
                kafka.prepare()
                started.append(OttlaNode.in_place_of(kafka).start())
            add_user(kafka.bootstrap)
            found.append(Side(name, f"127.0.0.1:{port}"))
            # A real Kafka learns of users a moment later.
            until(lambda side=found[-1]: all(logs_in(side, user) for user in PASSWORDS))  # type: ignore[misc]
        yield found
    finally:
        for each in started:
            each.stop()


def properties(kafka: RealKafka, keys: Path, place: str) -> dict[str, str]:
    """A listener with every mechanism beside the plaintext one."""
    own = kafka.properties
    prefix = "listener.name.proofs"
    return {
        "listeners": f"{own['listeners']},PROOFS://{place}",
        "advertised.listeners": f"{own['advertised.listeners']},PROOFS://{place}",
        "listener.security.protocol.map": f"{own['listener.security.protocol.map']},PROOFS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": MECHANISMS,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connection.failed.authentication.delay.ms": "1",
        "connections.max.reauth.ms": "600000",
        f"{prefix}.plain.sasl.jaas.config": plain_jaas(),
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{LOGIN};",
        f"{prefix}.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
    }


def add_user(bootstrap: str) -> None:
    """Let alice and admin log in with SCRAM, too, with their passwords."""
    for name, password in PASSWORDS.items():
        upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=name,
            mechanism=int(ScramMechanism.SHA_256),
            iterations=4096,
            salt=b"salt of a test",
            salted_password=salted_password(password, b"salt of a test", 4096, ScramMechanism.SHA_256),
        )
        with RawConnection(bootstrap) as connection:
            answer: Any = connection.call(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]), 0)
        assert answer.results[0].error_code == 0


def logs_in(side: Side, user: str) -> bool:
    with side.connect() as connection:
        begin(connection, "SCRAM-SHA-256")
        return prove(connection, "SCRAM-SHA-256", user) == 0


def is_served(connection: RawConnection) -> bool:
    try:
        connection.call(METADATA, 12)
    except (Closed, ConnectionError):
        return False
    return True


def verdict(side: Side, bearer: str | bytes) -> tuple[list[int], bytes, bool]:
    """The codes of the answers, what the first one says, and whether the client is served afterwards."""
    with side.connect() as connection:
        answer = present(connection, bearer)
        codes, said = [answer.error_code], bytes(answer.auth_bytes)
        if answer.error_code == 0 and said:  # RFC 7628: the refusal is a document, and the client says that it read it
            answer = connection.call(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
            codes.append(answer.error_code)
        return codes, said, is_served(connection)


# Deliberate differences: tokens that only one of the two accepts, or serves the client of, and why.
ONLY_OTTLA = {"expired within the clock skew": "Kafka accepts it for a session that is over, and closes the connection"}
ONLY_KAFKA = {"too long": "Ottla bounds the work for somebody whom nobody knows"}


@pytest.mark.parametrize("name", [*GOOD, *ATTACKS])
def test_the_same_tokens_are_accepted(name: str, sides: list[Side]) -> None:
    bearer = (GOOD | ATTACKS)[name]()
    kafka, ottla = (verdict(side, bearer) for side in sides)
    assert ottla[2] == (name in GOOD)
    if name in ONLY_OTTLA or name in ONLY_KAFKA:
        assert (kafka[2], ottla[2]) == (name in ONLY_KAFKA, name in ONLY_OTTLA)
    else:
        assert ottla == kafka


HOW = MECHANISMS.split(",")


@pytest.mark.parametrize("again", HOW)
@pytest.mark.parametrize("first", HOW)
@pytest.mark.parametrize("user", ["alice", "admin"])
def test_nobody_becomes_somebody_else(first: str, again: str, user: str, sides: list[Side]) -> None:
    """A connection of alice authenticates again, as herself and as another user, with each mechanism."""
    outcomes = []
    for side in sides:
        with side.connect() as connection:
            assert (begin(connection, first).error_code, prove(connection, first, "alice")) == (0, 0), side.name
            assert is_served(connection)
            # Kafka takes no second handshake in the first second.
            until(lambda connection=connection: begin(connection, again).error_code, lambda code: code == 0)  # type: ignore[misc]
            try:
                code = prove(connection, again, user)
            except (Closed, ConnectionError):
                assert (side.name, again != first) == ("kafka", True), "Kafka closes on another mechanism, unanswered"
                code = ErrorCode.SASL_AUTHENTICATION_FAILED
            outcomes.append((code, is_served(connection)))
    kafka, ottla = outcomes
    assert ottla == kafka
    assert ottla[1] == (user == "alice" and again == first)


def prove(connection: RawConnection, how: str, user: str) -> int:
    """Say what proves the user, after the handshake; return the error of the last answer."""
    if how == "PLAIN":
        return int(send_plain(connection, user, PASSWORDS[user]).error_code)
    if how == "SCRAM-SHA-256":
        return int(send_scram(connection, user, PASSWORDS[user]).error_code)
    answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=message(signed(sub=user))), 2)
    return int(answer.error_code)
