"""PLAIN: both sides, and messages that are refused with Kafka's texts."""

from __future__ import annotations

import pytest

from ottla.model import limits
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.plain import PlainClient, PlainServer, check_against

PASSWORDS = {"alice": "wonderland", "josé": "contraseña ∞", "empty": ""}


def server() -> PlainServer:
    return PlainServer(check_against(PASSWORDS))


@pytest.mark.parametrize("user", ["alice", "josé"])
def test_both_sides_agree(user: str) -> None:
    client = PlainClient(user, PASSWORDS[user])
    end = server().respond(client.first())
    assert end == Authenticated(Principal.user(user), b"")
    assert client.respond(end.message) is None


def test_the_message_is_that_of_rfc_4616() -> None:
    assert PlainClient("tim", "tanstaaftanstaaf").first() == b"\0tim\0tanstaaftanstaaf"
    assert PlainClient("Kurt", "xipj3plmq", "Ursel").first() == b"Ursel\0Kurt\0xipj3plmq"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0wonderland", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0wonderland\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 100, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0wonderland", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"\0alice\0Wonderland", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0wonderland", "Authentication failed: Invalid username or password"),
        (b"\0alice\0wonderland\xff", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0wonderland",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"x" * (limits.PLAIN_MESSAGE_BYTES_MAX + 1), "Invalid SASL/PLAIN response: it is too long"),
    ],
)
def test_what_is_refused(message: bytes, text: str) -> None:
    exchange = server()
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.respond(message)
    assert str(failed.value) == text
    with pytest.raises(AuthenticationFailed):
        exchange.respond(b"\0alice\0wonderland")  # there is no second try


def test_the_authorization_id_may_be_the_user() -> None:
    assert server().respond(b"alice\0alice\0wonderland").principal == Principal.user("alice")


@pytest.mark.parametrize(("user", "password"), [("", "x"), ("x", ""), ("a\0b", "x"), ("x", "a\0b")])
def test_impossible_arguments_are_refused_at_once(user: str, password: str) -> None:
    with pytest.raises(ValueError, match="PLAIN"):
        PlainClient(user, password)
