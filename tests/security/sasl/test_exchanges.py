"""Any client with any server: they agree, or the exchange fails with AuthenticationFailed and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.server_exchange import ServerExchange

from ottla.security.jwt import InvalidToken, ValidToken
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed, ClientExchange
from ottla.security.sasl.oauthbearer import OauthClient, OauthServer
from ottla.security.sasl.plain import PlainClient, PlainServer, check_against
from ottla.security.sasl.scram.client import ScramClient
from ottla.security.sasl.scram.credentials import ScramCredential, ScramIdentity, ScramMechanism, credential_of
from ottla.security.sasl.scram.server import ScramServer

MESSAGES_MAX = 5
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
SCRAM = {"SCRAM-SHA-256": ScramMechanism.SHA_256, "SCRAM-SHA-512": ScramMechanism.SHA_512}

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=20)
tokens = st.text("abc.-_~+/", min_size=1, max_size=10)
nonces = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=","), min_size=1, max_size=30)
mechanisms = st.sampled_from(MECHANISMS)


@lru_cache
def known_credential(secret: str, mechanism: ScramMechanism) -> ScramCredential:
    return credential_of(secret, b"salt", 4096, mechanism)


def client_of(mechanism: str, user: str, secret: str, nonce: str = "client") -> ClientExchange:
    if mechanism == "PLAIN":
        return PlainClient(user, secret)
    if mechanism == "OAUTHBEARER":
        return OauthClient(secret)
    return ScramClient(SCRAM[mechanism], user, secret, nonce)


def server_of(mechanism: str, user: str, secret: str, nonce: str = "server") -> ServerExchange:
    """A server that knows one user."""
    if mechanism == "PLAIN":
        return PlainServer(check_against({user: secret}))
    if mechanism == "OAUTHBEARER":

        def validate(token: str) -> ValidToken:
            if token != secret:
                raise InvalidToken("another token")
            return ValidToken(user, (), 1, None)

        return OauthServer(validate)

    def credential_for(name: str, token: bool) -> ScramIdentity | None:
        credential = known_credential(secret, SCRAM[mechanism])
        return ScramIdentity(credential, Principal.user(user)) if name == user and not token else None

    return ScramServer(SCRAM[mechanism], nonce, b"secret", credential_for)


def run(client: ClientExchange, server: ServerExchange, change: Callable[[bytes], bytes] = bytes) -> Principal:
    """Carry out an exchange; `change` is applied to each message of the client. Raises what either side raises."""
    message = client.first()
    for _ in range(MESSAGES_MAX):
        answer = server.respond(change(message))
        if isinstance(answer, Authenticated):
            assert client.respond(answer.message) is None
            return answer.principal
        reply = client.respond(answer)
        assert reply is not None, "the client thinks that the exchange is over, the server does not"
        message = reply
    raise AssertionError("the exchange does not end")


@given(mechanisms, texts, tokens, nonces, nonces)
@settings(max_examples=60)
def test_those_who_know_the_same_secret_agree(mechanism: str, user: str, secret: str, own: str, other: str) -> None:
    client, server = client_of(mechanism, user, secret, own), server_of(mechanism, user, secret, other)
    assert run(client, server) == Principal.user(user)


@given(st.sampled_from(MECHANISMS[:3]), texts, texts, nonces, nonces)
@settings(max_examples=60)
def test_passwords_may_have_every_character(mechanism: str, user: str, secret: str, own: str, other: str) -> None:
    client, server = client_of(mechanism, user, secret, own), server_of(mechanism, user, secret, other)
    assert run(client, server) == Principal.user(user)


@given(mechanisms, mechanisms, st.tuples(texts, tokens), st.tuples(texts, tokens))
@settings(max_examples=100)
def test_those_who_do_not_fail_cleanly(
    client_mechanism: str, server_mechanism: str, client: tuple[str, str], server: tuple[str, str]
) -> None:
    by_token = server_mechanism == "OAUTHBEARER"
    agreed = client_mechanism == server_mechanism and (client[1] == server[1] if by_token else client == server)
    if agreed:
        return
    with pytest.raises(AuthenticationFailed):
        run(client_of(client_mechanism, *client), server_of(server_mechanism, *server))


@st.composite
def changes(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """A change of some bytes of a message."""
    place, length = draw(st.integers(0, 60)), draw(st.integers(0, 3))
    inserted = draw(
        st.binary(max_size=3) | st.sampled_from([b",", b"=", b"\0", b"\x01", b"n,,", b"=2C", b"a=b,", b"\xff"])
    )
    return lambda message: message[:place] + inserted + message[place + length :]


@given(mechanisms, changes())
@settings(max_examples=200)
def test_a_changed_message_does_not_make_another_user(mechanism: str, change: Callable[[bytes], bytes]) -> None:
    client, server = client_of(mechanism, "alice", "pencil"), server_of(mechanism, "alice", "pencil")
    with contextlib.suppress(AuthenticationFailed):
        assert run(client, server, change) == Principal.user("alice")


@given(st.sampled_from(MECHANISMS[1:3]), changes())
@settings(max_examples=100)
def test_a_scram_exchange_with_any_change_fails(mechanism: str, change: Callable[[bytes], bytes]) -> None:
    client, server = client_of(mechanism, "alice", "pencil"), server_of(mechanism, "alice", "pencil")
    changed = False

    def noticing(message: bytes) -> bytes:
        nonlocal changed
        after = change(message)
        changed = changed or after != message
        return after

    try:
        run(client, server, noticing)
    except AuthenticationFailed:
        assert changed
    else:
        assert not changed


@given(mechanisms, st.lists(st.binary(max_size=80), max_size=4), st.booleans())
@settings(max_examples=200)
def test_a_server_refuses_any_bytes(mechanism: str, messages: list[bytes], begun: bool) -> None:
    server = server_of(mechanism, "alice", "pencil")
    if begun and mechanism != "PLAIN":
        server.respond(client_of(mechanism, "alice", "pencil").first())
    for message in messages:
        try:
            answer = server.respond(message)
        except AuthenticationFailed:
            continue
        assert isinstance(answer, bytes)


@given(mechanisms, st.lists(st.binary(max_size=80), max_size=3), st.booleans())
@settings(max_examples=200)
def test_a_client_refuses_any_bytes(mechanism: str, challenges: list[bytes], begun: bool) -> None:
    client = client_of(mechanism, "alice", "pencil")
    if begun and mechanism in SCRAM:
        answer = server_of(mechanism, "alice", "pencil").respond(client.first())
        assert isinstance(answer, bytes)
        client.respond(answer)
    for challenge in challenges:
        try:
            client.respond(challenge)
        except AuthenticationFailed:
            continue
        assert mechanism not in SCRAM, "a SCRAM client must not accept what the server did not sign"
