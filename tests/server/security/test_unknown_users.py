"""Nobody can find out by SCRAM which users exist: those that do not exist seem to have a password, always the same."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.server.security.secured import PASSWORDS, log_in, plain_jaas
from tests.support.requests.raw import RawConnection

from ottla.client.blocking.blocking import Blocking
from ottla.model.resources import ResourceType
from ottla.model.settings.sasl import OTTLA_SCRAM_UNKNOWN_USERS_SECRET
from ottla.security.sasl.scram.credentials import ScramMechanism, credential_of, made_up_credential
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest

SECRET = OTTLA_SCRAM_UNKNOWN_USERS_SECRET.name
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
}
ADMIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "admin",
    "sasl.password": PASSWORDS["admin"],
}
Start = Callable[[], EmbeddedBroker]


class Challenge(NamedTuple):
    salt: bytes
    iterations: int


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[EmbeddedBroker] = []

    def begin() -> EmbeddedBroker:
        for each in started:
            each.stop()
        started.append(EmbeddedBroker(tmp_path / "data", SETTINGS).start())
        return started[-1]

    yield begin
    started[-1].stop()


def challenge(broker: EmbeddedBroker, user: str) -> Challenge:
    """What a client is told before it has proved anything."""
    with RawConnection(broker.bootstrap) as connection:
        connection.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)
        first = SaslAuthenticateRequest(auth_bytes=f"n,,n={user},r=nonce".encode())
        answer: Any = connection.call(first, 2)
    said = dict(part.split("=", 1) for part in answer.auth_bytes.decode().split(","))
    return Challenge(b64decode(said["s"]), int(said["i"]))


def set_password(broker: EmbeddedBroker, user: str, password: str, iterations: int) -> None:
    with Blocking(broker.bootstrap, security=ADMIN) as client:
        client.admin.users.set_password(user, password, iterations=iterations)


def test_salts_of_unknown_users_do_not_change(start: Start) -> None:
    broker = start()
    set_password(broker, "alice", "one", 8_192)
    seen, real = challenge(broker, "nobody"), challenge(broker, "alice")
    assert seen.iterations == real.iterations and seen.salt.isalnum() and abs(len(seen.salt) - len(real.salt)) < 4
    assert challenge(broker, "somebody").salt != seen.salt
    set_password(broker, "alice", "two", 8_192)
    set_password(broker, "bob", "three", 4_096)
    set_password(broker, "carol", "four", 8_192)
    assert challenge(broker, "nobody") == seen
    broker = start()
    assert challenge(broker, "nobody") == seen


def test_a_user_cannot_compute_them(start: Start) -> None:
    """The first user knows the own password, hence all that is derived from it."""
    broker = start()
    set_password(broker, "alice", "one", 4_096)
    own, mechanism = challenge(broker, "alice"), ScramMechanism.SHA_512
    known = credential_of("one", own.salt, own.iterations, mechanism)
    salts = {made_up_credential("False nobody", key, 4_096, mechanism).salt for key in known[:3]}
    assert challenge(broker, "nobody").salt not in salts


def test_the_secret_is_chosen_once_and_shown_to_nobody(start: Start) -> None:
    broker = start()
    assert broker.node is not None
    state = broker.node.metadata.state
    assert SECRET not in state.config(ResourceType.BROKER, "")
    set_password(broker, "alice", "one", 4_096)
    secret = state.config(ResourceType.BROKER, "")[SECRET]
    assert len(b64decode(secret)) == 32
    set_password(broker, "bob", "two", 4_096)
    assert state.config(ResourceType.BROKER, "")[SECRET] == secret
    resources = [
        DescribeConfigsRequest.Resource(resource_type=ResourceType.BROKER, resource_name=name, configuration_keys=None)
        for name in ("", "1")
    ]
    with RawConnection(broker.bootstrap) as connection:
        answer: Any = log_in(connection).call(DescribeConfigsRequest(resources=resources), 4)
    told = [entry for result in answer.results for entry in result.configs if entry.name == SECRET]
    assert len(told) == 2 and all(entry.is_sensitive and entry.value is None for entry in told)
