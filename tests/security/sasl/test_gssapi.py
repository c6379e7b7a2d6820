"""GSSAPI without Kerberos: the order of messages, layers and names, with a context that signs by writing its key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.kerberos_names import KerberosRules
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.gssapi import GssClient, GssContext, GssFailed, GssServer, local_name
from ottla.security.sasl.jaas import LoginModule, parse_jaas_line
from ottla.security.sasl.kerberos_login import KerberosLogin

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SIGNED = b"signed:"
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
RULES = KerberosRules(["RULE:[2:$1]", "DEFAULT"], "REALM")


class Steps:
    """A context that is complete after some tokens; `last` is its own last token."""

    def __init__(self, tokens: int, last: bytes = b"token", name: str = "alice@REALM") -> None:
        self._left = tokens
        self._last = last
        self._name = name

    @property
    def complete(self) -> bool:
        return self._left == 0

    def step(self, token: bytes) -> bytes:
        if self.complete or token not in (b"", b"token"):
            raise GssFailed("a secret reason")
        self._left -= 1
        return self._last if self.complete else b"token"

    def initiator(self) -> str:
        return self._name

    def wrap(self, message: bytes) -> bytes:
        return SIGNED + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(SIGNED):
            raise GssFailed("a secret reason")
        return message.removeprefix(SIGNED)


def server_of(context: GssContext) -> GssServer:
    return GssServer(context, lambda name: local_name(RULES, name))


def reason_of(server: GssServer, message: bytes) -> str:
    """Why the log says that a message is refused; the client is told always the same."""
    with pytest.raises(AuthenticationFailed, match=REFUSED) as failed:
        server.respond(message)
    return failed.value.reason


def after_the_offer(name: str = "alice@REALM") -> GssServer:
    server = server_of(Steps(1, b"", name))
    assert server.respond(b"token") == SIGNED + b"\x01\0\0\0", "no layer, and no size"
    return server


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_both_sides_agree(tokens: int) -> None:
    """With one token the server does not prove who it is; the library is asked for more."""
    context = Steps(tokens, b"" if tokens > 1 else b"token")
    client = GssClient(context, context.step(b""))
    server = server_of(Steps(max(tokens - 1, 1), b"token" if tokens > 1 else b""))
    message: bytes | None = client.first()
    for _ in range(6):
        assert message is not None
        answer = server.respond(message)
        if isinstance(answer, Authenticated):
            assert answer == Authenticated(Principal.user("alice"), b"")
            assert client.respond(answer.message) is None
            return
        message = client.respond(answer)
    pytest.fail("it does not end")


def test_the_offer_waits_for_the_client_when_a_token_went_to_it() -> None:
    server = server_of(Steps(1))
    assert server.respond(b"token") == b"token"
    assert server.respond(b"") == SIGNED + b"\x01\0\0\0"
    server = server_of(Steps(1))
    server.respond(b"token")
    assert reason_of(server, b"token") == "a token arrived after the last one"


@pytest.mark.parametrize("authorization_id", [b"", b"alice@REALM", b"admin@REALM", b"kafka@localhost", b"\xff"])
def test_an_authorization_id_gives_no_right(authorization_id: bytes) -> None:
    end = after_the_offer().respond(SIGNED + b"\x01\0\xff\xff" + authorization_id)
    assert isinstance(end, Authenticated) and end.principal == Principal.user("alice")


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (b"\x02\0\xff\xff", "the client chose a security layer that was not offered (2)"),
        (b"\x04\0\xff\xff", "the client chose a security layer that was not offered (4)"),
        (b"\x03\0\xff\xff", "the client chose a security layer that was not offered (3)"),
        (b"\0\0\0\0", "the client chose a security layer that was not offered (0)"),
        (b"\x01\0\0", "the client's choice of a security layer is too short"),
    ],
)
def test_choices_that_are_refused(choice: bytes, reason: str) -> None:
    assert reason_of(after_the_offer(), SIGNED + choice) == reason


def test_a_choice_that_nobody_signed() -> None:
    assert reason_of(after_the_offer(), b"\x01\0\0\0") == "a secret reason"


@pytest.mark.parametrize(
    ("name", "told"),
    [("alice@OTHER", "no rule"), ("@REALM", "an empty name"), ("a@b@REALM", "is not a Kerberos name")],
)
def test_names_without_a_principal(name: str, told: str) -> None:
    assert told in reason_of(after_the_offer(name), SIGNED + b"\x01\0\0\0")


def test_rules_apply() -> None:
    end = after_the_offer("broker/host@OTHER").respond(SIGNED + b"\x01\0\0\0")
    assert isinstance(end, Authenticated) and end.principal == Principal.user("broker")


def test_nothing_follows_a_failure_or_the_end() -> None:
    server = server_of(Steps(1))
    assert reason_of(server, b"") == "the client sent no token"
    assert reason_of(server, b"token") == "a message arrived after the end of the exchange"
    server = after_the_offer()
    server.respond(SIGNED + b"\x01\0\0\0")
    assert reason_of(server, SIGNED + b"\x01\0\0\0") == "a message arrived after the end of the exchange"


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=6))
def test_any_messages_end_in_the_same_failure(messages: list[bytes]) -> None:
    server = server_of(Steps(2))

    def talk() -> None:
        for message in (*messages, b"not a token", b"more"):
            server.respond(message)

    with pytest.raises(AuthenticationFailed, match=REFUSED):
        talk()


@pytest.mark.parametrize("offer", [b"\x02\0\0\0", b"\x01", b"", b"\x01\0\0\0\0"])
def test_a_client_takes_no_layer(offer: bytes) -> None:
    context = Steps(1)
    client = GssClient(context, context.step(b""))
    with pytest.raises(AuthenticationFailed, match="it demands a security layer of SASL"):
        client.respond(SIGNED + offer)


@pytest.mark.parametrize("offer", [b"\x01\0\0\0", b"\x07\x01\0\0"])
def test_a_client_chooses_none_of_several(offer: bytes) -> None:
    context = Steps(1)
    client = GssClient(context, context.step(b""))
    assert client.respond(SIGNED + offer) == SIGNED + b"\x01\0\0\0"
    assert client.respond(b"") is None


def test_a_client_notices_a_server_without_the_key() -> None:
    client = GssClient(Steps(1), b"token")
    with pytest.raises(AuthenticationFailed, match="a secret reason"):
        client.respond(b"garbage")


def login_of(options: str, service: str = "") -> KerberosLogin:
    return KerberosLogin.of(parse_jaas_line(f"{MODULE} required {options};"), service)


def test_options_of_the_login_module() -> None:
    options = 'useKeyTab=true storeKey=true keyTab="/k" principal="kafka/h@R" serviceName="kafka"'
    assert login_of(options).for_server() == KerberosLogin("kafka", "kafka/h@R", "/k", True, True)
    assert login_of('useTicketCache=true ticketCache="/c"', "kafka") == KerberosLogin(
        "kafka", ticket_cache="/c", uses_ticket_cache=True
    )
    assert login_of('useKeyTab=true keyTab="file:///k"', "kafka").keytab == "/k"
    assert KerberosLogin.of(None, "kafka") == KerberosLogin("kafka")


@pytest.mark.parametrize(
    ("options", "service", "told"),
    [
        ("", "", "sasl.kerberos.service.name is not set"),
        ("serviceName=one", "two", "is one, but sasl.kerberos.service.name is two"),
        ('keyTab="/k"', "kafka", "keyTab needs useKeyTab=true"),
        ('ticketCache="/c"', "kafka", "ticketCache needs useTicketCache=true"),
    ],
)
def test_options_that_are_refused(options: str, service: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        login_of(options, service)


def test_what_a_server_needs() -> None:
    with pytest.raises(ValueError, match="set useKeyTab=true, storeKey=true and keyTab"):
        login_of('useKeyTab=true keyTab="/k" principal="kafka/h"', "kafka").for_server()
    with pytest.raises(ValueError, match="set principal in"):
        login_of("useKeyTab=true storeKey=true", "kafka").for_server()
    with pytest.raises(ValueError, match="the login module of GSSAPI is"):
        KerberosLogin.of(LoginModule("other", "required", {}), "kafka")
