"""OAUTHBEARER: both sides, tokens that are refused, and messages that are none."""

from __future__ import annotations

import pytest

from ottla.model import limits
from ottla.security.jwt import InvalidToken, UnknownKey, ValidToken
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.failures import InvalidCredentials
from ottla.security.sasl.oauthbearer import BearerMessage, OauthClient, OauthServer, parse_bearer_message

REFUSAL = b'{"status":"invalid_token"}'


def validate(token: str) -> ValidToken:
    if token != "good.token":
        raise InvalidToken("why")
    return ValidToken("alice", ("read",), 5_000, 1_000)


def test_both_sides_agree() -> None:
    client = OauthClient("good.token", {"traceId": "123", "logicalCluster": "a b=c"})
    end = OauthServer(validate).respond(client.first())
    assert end == Authenticated(Principal.user("alice"), b"", expires_at_ms=5_000)
    assert client.respond(end.message) is None


def test_the_message_is_that_of_kafka() -> None:
    assert OauthClient("tok").first() == b"n,,\x01auth=Bearer tok\x01\x01"
    assert OauthClient("tok", {"a": "b"}, "x,y=z").first() == b"n,a=x=2Cy=3Dz,\x01auth=Bearer tok\x01a=b\x01\x01"
    parsed = parse_bearer_message(b"n,a=x=2Cy=3Dz,\x01a=b\x01auth=bEARER   to-k_~+/.1==\x01c=d=e\t\x01\x01")
    assert parsed == BearerMessage("to-k_~+/.1==", "x,y=z", {"a": "b", "c": "d=e\t"})


def test_a_refused_token_is_answered_twice() -> None:
    client, server = OauthClient("bad"), OauthServer(validate)
    challenge = server.respond(client.first())
    assert challenge == REFUSAL
    assert server.refused_because == "why"
    answer = client.respond(REFUSAL)
    assert answer == b"\x01"
    with pytest.raises(AuthenticationFailed) as failed:
        server.respond(answer)
    assert str(failed.value) == REFUSAL.decode()
    with pytest.raises(AuthenticationFailed):
        server.respond(OauthClient("good.token").first())
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        client.respond(b"")


def test_after_a_refusal_another_token_is_not_tried() -> None:
    server = OauthServer(validate)
    server.respond(OauthClient("bad").first())
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        server.respond(OauthClient("good.token").first())


def test_a_token_can_be_checked_again_after_its_key_was_fetched() -> None:
    keys: list[str] = []

    def check(token: str) -> ValidToken:
        if not keys:
            raise UnknownKey("new")
        return validate(token)

    server, message = OauthServer(check), OauthClient("good.token").first()
    with pytest.raises(UnknownKey):
        server.respond(message)
    keys.append("new")
    assert isinstance(server.respond(message), Authenticated)
    with pytest.raises(InvalidCredentials):
        server.respond(message)


def test_the_authorization_id_may_only_be_the_name_in_the_token() -> None:
    assert isinstance(OauthServer(validate).respond(OauthClient("good.token", None, "alice").first()), Authenticated)
    with pytest.raises(AuthenticationFailed) as failed:
        OauthServer(validate).respond(OauthClient("good.token", None, "bob").first())
    assert str(failed.value) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (alice)"
    )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,\x01auth=Bearer t\x01\x01\x01",
        b"n,,\x01auth=Bearer t\x01\x01x",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"n,a=,\x01auth=Bearer t\x01\x01",
        b"n,a=b=c,\x01auth=Bearer t\x01\x01",
        b"n\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearert\x01\x01",
        b"n,,\x01auth=Bearer t t\x01\x01",
        b"n,,\x01auth=Bearer t=t\x01\x01",
        b"n,,\x01Auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01",
        b"n,,\x01auth=Bearer t\x01a\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\x01\x01",
        b"n,,\x01auth=Bearer t\x01a1=b\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\xc3\xa9\x01\x01",
        b"n,,\x01auth=Bearer t\x01a=\xff\x01\x01",
        b"n,,\x01auth=Bearer " + b"t" * limits.OAUTH_MESSAGE_BYTES_MAX + b"\x01\x01",
    ],
)
def test_a_message_that_is_none_is_refused(message: bytes) -> None:
    server = OauthServer(validate)
    with pytest.raises(InvalidCredentials, match="invalid credentials with SASL mechanism OAUTHBEARER"):
        server.respond(message)
    with pytest.raises(InvalidCredentials):
        server.respond(OauthClient("good.token").first())


@pytest.mark.parametrize(
    ("token", "extensions"),
    [
        ("", {}),
        ("a b", {}),
        ("a\x01b", {}),
        ("a", {"auth": "b"}),
        ("a", {"1": "b"}),
        ("a", {"b": ""}),
        ("a", {"b": "c\x01d"}),
    ],
)
def test_impossible_arguments_are_refused_at_once(token: str, extensions: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"token|extension"):
        OauthClient(token, extensions)


def test_a_long_refusal_is_shortened_and_printable() -> None:
    client = OauthClient("t")
    client.respond(b"\x1b[31m" + b"x" * 100_000)
    with pytest.raises(AuthenticationFailed) as failed:
        client.respond(b"")
    assert len(str(failed.value)) < 2_000 and str(failed.value).isprintable()
