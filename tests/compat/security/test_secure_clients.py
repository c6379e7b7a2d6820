"""Every client over every mechanism, with TLS and without: it writes transactions, and reads them in a group.

Only alice may do so, so a client whose identity is not found to be hers fails.
"""

import pytest
from tests.compat.conftest import Names
from tests.compat.security.round_trips import (
    CLIENTS,
    MUTUAL,
    OURS,
    PLAIN,
    SCRAM,
    TLS,
    TOKENS,
    client_of,
    our_round_trip,
    round_trip,
)
from tests.compat.security.secure_node import WAYS, SecureNode
from tests.support.clients.security import ClientSecurity
from tests.support.waiting import until

from ottla.client.admin.tokens import DelegationToken
from ottla.client.blocking.blocking import Blocking

TOKEN_CLIENTS = ("java-4.3.1", "java-3.9.2", "franz-go")  # the others cannot say that they log in with a token
TOKEN_WAYS = ("SASL_PLAINTEXT-SCRAM-SHA-256", "SASL_SSL-SCRAM-SHA-512")
FEATURES = {"": MUTUAL, "PLAIN": PLAIN, "SCRAM-SHA-256": SCRAM, "SCRAM-SHA-512": SCRAM}  # by mechanism
MARKED_WAYS = [
    pytest.param(way, marks=pytest.mark.feature(FEATURES[mechanism]), id=way) for way, (_, mechanism) in WAYS.items()
]


@pytest.fixture(scope="module")
def token(secure: SecureNode) -> DelegationToken:
    """A delegation token of alice; she has asked for it with her password."""

    listener = "SASL_SSL"
    with Blocking(secure.at(listener), security=secure.security(listener, "PLAIN").java()) as client:
        made = client.admin.tokens.create()
        until(lambda: client.admin.tokens.all([made.owner]), bool)  # a real Kafka's brokers know it a moment later
    return made


def with_token(secure: SecureNode, way: str, token: DelegationToken) -> ClientSecurity:
    listener, mechanism = WAYS[way]
    return secure.security(listener, mechanism)._replace(user=token.token_id, password=token.password, is_token=True)


@pytest.mark.parametrize("way", MARKED_WAYS)
@pytest.mark.parametrize("name", CLIENTS)
def test_writes_and_reads(
    name: str, way: str, secure: SecureNode, new_name: Names, request: pytest.FixtureRequest
) -> None:
    listener, mechanism = WAYS[way]
    client = client_of(name, request, secure.security(listener, mechanism))
    round_trip(client, secure.at(listener), secure.create(new_name("alice")))


@pytest.mark.feature(TOKENS)
@pytest.mark.parametrize("way", TOKEN_WAYS)
@pytest.mark.parametrize("name", TOKEN_CLIENTS)
def test_writes_and_reads_with_a_delegation_token(
    name: str, way: str, secure: SecureNode, token: DelegationToken, new_name: Names, request: pytest.FixtureRequest
) -> None:
    client = client_of(name, request, with_token(secure, way, token))
    round_trip(client, secure.at(WAYS[way][0]), secure.create(new_name("alice")))


@pytest.mark.feature(TLS)
@pytest.mark.parametrize("listener", ["SSL", "OLDER"])
@pytest.mark.parametrize("name", CLIENTS)
def test_writes_and_reads_over_tls_alone(
    name: str, listener: str, secure: SecureNode, new_name: Names, request: pytest.FixtureRequest
) -> None:
    """With TLS 1.3, and with a listener that has no newer version than 1.2."""
    client = client_of(name, request, secure.security(listener))
    round_trip(client, secure.at(listener), secure.create(new_name("anybody")))


@pytest.mark.tool(OURS)
@pytest.mark.parametrize("way", [*MARKED_WAYS, pytest.param("SSL", marks=pytest.mark.feature(TLS), id="SSL")])
def test_our_client(way: str, secure: SecureNode, new_name: Names) -> None:
    listener, mechanism = WAYS.get(way, (way, ""))
    our_round_trip(secure.at(listener), new_name("alice"), secure.security(listener, mechanism).java())


@pytest.mark.tool(OURS)
@pytest.mark.feature(TOKENS)
@pytest.mark.parametrize("way", TOKEN_WAYS)
def test_our_client_with_a_delegation_token(
    way: str, secure: SecureNode, token: DelegationToken, new_name: Names
) -> None:
    our_round_trip(secure.at(WAYS[way][0]), new_name("alice"), with_token(secure, way, token).java())
