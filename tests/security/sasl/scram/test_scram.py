"""SCRAM: the vectors of RFC 7677, both sides together, and what attackers may try."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

import pytest

from ottla.model import limits
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.failures import InvalidCredentials
from ottla.security.sasl.scram.client import ScramClient
from ottla.security.sasl.scram.credentials import (
    SCRAM_MECHANISMS,
    ScramIdentity,
    ScramMechanism,
    client_key,
    credential_of,
    made_up_credential,
    salt_from,
    salted_password,
    xor,
)
from ottla.security.sasl.scram.messages import sasl_name, user_name
from ottla.security.sasl.scram.server import ScramServer

SECRET = b"secret of the node"
# The exchange of RFC 7677, section 3.
RFC_SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_CLIENT_NONCE, RFC_SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def identity(
    user: str = "user",
    password: str = "pencil",
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    iterations: int = 4096,
) -> ScramIdentity:
    return ScramIdentity(credential_of(password, RFC_SALT, iterations, mechanism), Principal.user(user))


def server(mechanism: ScramMechanism = ScramMechanism.SHA_256, **known: ScramIdentity) -> ScramServer:
    return ScramServer(mechanism, RFC_SERVER_NONCE, SECRET, lambda user, token: None if token else known.get(user))


def started(**known: ScramIdentity) -> ScramServer:
    begun = server(**(known or {"user": identity()}))
    assert begun.respond(RFC_CLIENT_FIRST) == RFC_SERVER_FIRST
    return begun


def run(client: ScramClient, peer: ScramServer) -> Authenticated:
    challenge = peer.respond(client.first())
    assert isinstance(challenge, bytes)
    answer = client.respond(challenge)
    assert answer is not None
    end = peer.respond(answer)
    assert isinstance(end, Authenticated)
    assert client.respond(end.message) is None
    return end


def test_the_client_speaks_as_in_the_rfc() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", RFC_CLIENT_NONCE)
    assert client.first() == RFC_CLIENT_FIRST
    assert client.respond(RFC_SERVER_FIRST) == RFC_CLIENT_FINAL
    assert client.respond(RFC_SERVER_FINAL) is None


def test_the_server_speaks_as_in_the_rfc() -> None:
    end = started().respond(RFC_CLIENT_FINAL)
    assert end == Authenticated(Principal.user("user"), RFC_SERVER_FINAL)


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("user", ["alice", "a,b=c", "=2C=3D", "josé", "x" * 255, "CN=Duke,O=Java"])
def test_both_sides_agree(mechanism: ScramMechanism, user: str) -> None:
    known = identity(user, "p=a,ss\0wörd", mechanism)
    client = ScramClient(mechanism, user, "p=a,ss\0wörd", "clientnonce")
    assert run(client, server(mechanism, **{user: known})).principal == Principal.user(user)


def test_mechanisms_have_kafkas_names_and_numbers() -> None:
    assert SCRAM_MECHANISMS == {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


def test_a_delegation_token_authenticates_its_owner_until_it_expires() -> None:
    asked = []
    owner = Principal("User", "alice", token_authenticated=True)
    known = ScramIdentity(credential_of("hmac", RFC_SALT, 4096, ScramMechanism.SHA_512), owner, expires_at_ms=1_234)

    def credential_for(user: str, token: bool) -> ScramIdentity | None:
        asked.append((user, token))
        return known

    client = ScramClient(ScramMechanism.SHA_512, "token-id", "hmac", "nonce", {"tokenauth": "true"})
    assert client.first() == b"n,,n=token-id,r=nonce,tokenauth=true"
    end = run(client, ScramServer(ScramMechanism.SHA_512, "other", SECRET, credential_for))
    assert (end.principal, end.expires_at_ms) == (owner, 1_234)
    assert asked == [("token-id", True)]


@pytest.mark.parametrize(
    ("extensions", "token"), [(",tokenauth=TRUE", True), (",tokenauth=yes", False), (",x=a=b", False)]
)
def test_other_extensions_are_ignored(extensions: str, token: bool) -> None:
    asked = []

    def credential_for(user: str, is_token: bool) -> None:
        asked.append((user, is_token))

    exchange = ScramServer(ScramMechanism.SHA_256, "n", SECRET, credential_for)
    exchange.respond(RFC_CLIENT_FIRST + extensions.encode())
    assert asked == [("user", token)]


def test_a_wrong_password_is_refused() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencils", RFC_CLIENT_NONCE)
    exchange = started()
    answer = client.respond(RFC_SERVER_FIRST)
    assert answer is not None
    with pytest.raises(InvalidCredentials, match="due to invalid credentials with SASL mechanism SCRAM-SHA-256"):
        exchange.respond(answer)


def failure_of(exchange: ScramServer, user: str) -> tuple[bytes, str]:
    """Return the challenge and the error of an exchange with a wrong password."""
    client = ScramClient(ScramMechanism.SHA_256, user, "wrong", "nonce")
    challenge = exchange.respond(client.first())
    assert isinstance(challenge, bytes)
    answer = client.respond(challenge)
    assert answer is not None
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.respond(answer)
    return challenge, f"{type(failed.value)} {failed.value} {vars(failed.value)}"


def test_an_unknown_user_looks_like_a_wrong_password() -> None:
    random_salt = identity()._replace(
        credential=credential_of("pencil", salt_from(bytes(range(100, 117))), 4096, ScramMechanism.SHA_256)
    )
    known_challenge, known_error = failure_of(server(user=random_salt), "user")
    challenge, error = failure_of(server(), "nobody")
    assert error == known_error
    form = re.compile(rb"r=nonce[^,]+,s=[A-Za-z0-9+/]{34,35}={1,2},i=4096|r=nonce[^,]+,s=[A-Za-z0-9+/]{36},i=4096")
    assert form.fullmatch(known_challenge) and form.fullmatch(challenge)
    assert failure_of(server(), "nobody") == (challenge, error), "its salt must not change, either"
    assert failure_of(server(), "nobody2")[0] != challenge


def test_a_made_up_credential_differs_per_name_secret_and_mechanism() -> None:
    first = made_up_credential("a", SECRET, 4096, ScramMechanism.SHA_256)
    assert first == made_up_credential("a", SECRET, 4096, ScramMechanism.SHA_256)
    for other in (
        made_up_credential("b", SECRET, 4096, ScramMechanism.SHA_256),
        made_up_credential("a", b"other", 4096, ScramMechanism.SHA_256),
        made_up_credential("a", SECRET, 4096, ScramMechanism.SHA_512),
    ):
        assert {first.salt, first.stored_key, first.server_key}.isdisjoint(other[:3])


def test_whoever_knows_the_made_up_keys_is_still_refused() -> None:
    """Even a proof that fits is not enough for a user that does not exist."""
    known = identity()
    exchange = server()
    challenge = exchange.respond(RFC_CLIENT_FIRST)
    assert isinstance(challenge, bytes)
    exchange._credential = known.credential  # as if the client had guessed the keys
    exchange._challenge = RFC_SERVER_FIRST.decode()
    with pytest.raises(InvalidCredentials):
        exchange.respond(RFC_CLIENT_FINAL)


def test_a_credential_with_too_few_iterations_is_not_used() -> None:
    weak = identity(iterations=4095)
    challenge = server(user=weak).respond(RFC_CLIENT_FIRST)
    assert challenge == server().respond(RFC_CLIENT_FIRST), "as if the user did not exist"


def test_keys_are_not_printed() -> None:
    known = identity()
    for part in known.credential[:3]:
        assert repr(part) not in repr(known) and b64encode(part).decode() not in repr(known)


def final(
    nonce: str = RFC_CLIENT_NONCE + RFC_SERVER_NONCE, channel: bytes = b"n,,", proof: bytes | None = None
) -> bytes:
    good = RFC_CLIENT_FINAL.rpartition(b",p=")[2] if proof is None else b64encode(proof)
    return b"c=" + b64encode(channel) + b",r=" + nonce.encode() + b",p=" + good


@pytest.mark.parametrize(
    "message",
    [
        final(nonce=RFC_CLIENT_NONCE),
        final(nonce=RFC_SERVER_NONCE),
        final(nonce="x" + RFC_CLIENT_NONCE + RFC_SERVER_NONCE),
        final(nonce=RFC_CLIENT_NONCE + RFC_SERVER_NONCE + "x"),
        final(channel=b"y,,"),
        final(channel=b""),
        final(channel=b"p=tls-unique,,data"),
        final(proof=b""),
        final(proof=bytes(31)),
        final(proof=bytes(32)),
        final(proof=bytes(33)),
        RFC_CLIENT_FINAL.replace(b",p=", b",x=1,p="),
        RFC_CLIENT_FINAL + b"\n",
        RFC_CLIENT_FINAL + b",x=1",
        RFC_CLIENT_FINAL[:-1],
        RFC_CLIENT_FINAL.replace(b"dHzb", b"d\xc3\xbczb"),
        RFC_CLIENT_FIRST,
        b"",
        b"\xff",
        b"c=biws,r=" + b"x" * limits.SCRAM_MESSAGE_BYTES_MAX + b",p=AAAA",
    ],
)
def test_a_final_message_that_does_not_fit_is_refused(message: bytes) -> None:
    exchange = started()
    with pytest.raises(InvalidCredentials):
        exchange.respond(message)
    with pytest.raises(InvalidCredentials):
        exchange.respond(RFC_CLIENT_FINAL)  # there is no second try


def proven(nonce: str) -> bytes:
    """The final message of a client that knows the password, with a proof for whatever nonce it sends."""
    mechanism = ScramMechanism.SHA_256
    key = client_key(salted_password("pencil", RFC_SALT, 4096, mechanism), mechanism)
    transcript = b",".join((RFC_CLIENT_FIRST.removeprefix(b"n,,"), RFC_SERVER_FIRST, f"c=biws,r={nonce}".encode()))
    return final(nonce, proof=xor(key, mechanism.hmac(mechanism.hash(key), transcript)))


def test_even_a_right_proof_must_be_about_the_nonce_of_the_exchange() -> None:
    nonce = RFC_CLIENT_NONCE + RFC_SERVER_NONCE
    assert proven(nonce) == RFC_CLIENT_FINAL
    for other in (RFC_SERVER_NONCE, "x" + nonce, nonce + "x", RFC_CLIENT_NONCE):
        with pytest.raises(InvalidCredentials):
            started().respond(proven(other))


def test_a_recorded_exchange_cannot_be_replayed() -> None:
    again = ScramServer(ScramMechanism.SHA_256, "fresh", SECRET, lambda user, token: identity())
    again.respond(RFC_CLIENT_FIRST)
    with pytest.raises(InvalidCredentials):
        again.respond(RFC_CLIENT_FINAL)


def test_a_complete_exchange_takes_no_further_message() -> None:
    exchange = started()
    exchange.respond(RFC_CLIENT_FINAL)
    with pytest.raises(InvalidCredentials):
        exchange.respond(RFC_CLIENT_FINAL)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xfe",
        b"n,,n=user",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=us=er,r=abc",
        b"n,,n=us=2cer,r=abc",
        b"n,,n=user,r=a b",
        b"n,,n=us\0er,r=abc",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=,n=user,r=abc",
        b"n,,n=user,r=abc,tokenauth",
        b"n,,n=user,r=abc,",
        b"n,,n=user,r=abc\n",
        b"n,,r=abc,n=user",
        b"n,,n=user,r=" + b"x" * limits.SCRAM_MESSAGE_BYTES_MAX,
    ],
)
def test_a_first_message_that_is_none_is_refused(message: bytes) -> None:
    exchange = server(user=identity())
    with pytest.raises(InvalidCredentials) as failed:
        exchange.respond(message)
    assert "user" not in failed.value.reason or not message, "the reason does not repeat the message"
    with pytest.raises(InvalidCredentials):
        exchange.respond(RFC_CLIENT_FIRST)


def test_the_authorization_id_may_only_be_the_user() -> None:
    assert isinstance(server(user=identity()).respond(b"n,a=user,n=user,r=abc"), bytes)
    for known in ({"user": identity()}, {}):
        with pytest.raises(AuthenticationFailed, match="an authorization id that is different from username"):
            server(**known).respond(b"n,a=admin,n=user,r=abc")


def test_the_channel_binding_repeats_the_authorization_id() -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", RFC_CLIENT_NONCE)
    exchange = server(user=identity())
    challenge = exchange.respond(b"n,a=user,n=user,r=" + RFC_CLIENT_NONCE.encode())
    assert isinstance(challenge, bytes)
    answer = client.respond(challenge)
    assert answer is not None and answer.startswith(b"c=biws,")
    with pytest.raises(InvalidCredentials):
        exchange.respond(answer)


@pytest.mark.parametrize(
    "challenge",
    [
        RFC_SERVER_FIRST.replace(b"rOpr", b"xOpr"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        RFC_SERVER_FIRST.replace(b"4096", b"4095"),
        RFC_SERVER_FIRST.replace(b"4096", b"0"),
        RFC_SERVER_FIRST.replace(b"4096", b"-1"),
        RFC_SERVER_FIRST.replace(b"4096", b"2147483647"),
        RFC_SERVER_FIRST.replace(b"4096", b"9" * 5000),
        RFC_SERVER_FIRST.replace(b"gQ==", b"gQ="),
        b"e=other-error",
        b"",
    ],
)
def test_the_client_refuses_a_bad_challenge(challenge: bytes) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", RFC_CLIENT_NONCE)
    with pytest.raises(AuthenticationFailed):
        client.respond(challenge)
    with pytest.raises(AuthenticationFailed):
        client.respond(RFC_SERVER_FIRST)


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize(
    "iterations", [1, limits.SCRAM_ITERATIONS_MIN - 1, limits.SCRAM_CLIENT_ITERATIONS_MAX + 1, 2**31 - 1]
)
def test_the_client_does_no_work_for_a_hostile_iteration_count(
    mechanism: ScramMechanism, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few make a recorded proof easy to guess from, as Java's client holds as well; very many occupy the client."""
    derived: list[object] = []
    monkeypatch.setattr("ottla.security.sasl.scram.client.salted_password", lambda *asked: derived.append(asked))
    client = ScramClient(mechanism, "user", "pencil", RFC_CLIENT_NONCE)
    with pytest.raises(
        AuthenticationFailed, match=f"asks for {iterations} iterations of {mechanism.sasl_name}; 4096 to"
    ):
        client.respond(RFC_SERVER_FIRST.replace(b"4096", str(iterations).encode()))
    assert not derived


@pytest.mark.parametrize("nonce", ["", "x", RFC_SERVER_NONCE, RFC_CLIENT_NONCE[:-1], RFC_CLIENT_NONCE.swapcase() + "x"])
def test_the_client_refuses_a_nonce_that_does_not_extend_its_own(nonce: str) -> None:
    """Otherwise a recorded answer of a server could be played back."""
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", RFC_CLIENT_NONCE)
    with pytest.raises(AuthenticationFailed, match="does not extend the nonce of the client" if nonce else "be read"):
        client.respond(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (b"v=" + b64encode(bytes(32)), "Invalid server signature"),
        (b"v=", "Invalid server signature"),
        (b"e=unknown-user", "failed with error: unknown-user"),
        (b"", "cannot be read"),
        (RFC_SERVER_FIRST, "cannot be read"),
    ],
)
def test_the_client_refuses_a_server_that_does_not_know_the_password(end: bytes, reason: str) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", RFC_CLIENT_NONCE)
    client.respond(RFC_SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match=reason):
        client.respond(end)
    with pytest.raises(AuthenticationFailed):
        client.respond(RFC_SERVER_FINAL)


@pytest.mark.parametrize(
    ("user", "nonce"), [("", "nonce"), ("a\0", "nonce"), ("user", ""), ("user", "a,b"), ("user", "é")]
)
def test_impossible_arguments_are_refused_at_once(user: str, nonce: str) -> None:
    with pytest.raises(ValueError, match="SCRAM"):
        ScramClient(ScramMechanism.SHA_256, user, "pencil", nonce)


def test_a_salt_has_the_form_of_kafkas() -> None:
    assert salt_from(b"\xff" * 17) == b"1omfr" + salt_from(b"\xff" * 17)[5:]
    assert len(salt_from(b"\xff" * 17)) == 26
    assert int(salt_from(bytes(range(17))), 36) == int.from_bytes(bytes(range(17))) & ((1 << 130) - 1)
    with pytest.raises(ValueError, match="130"):
        salt_from(bytes(16))


@pytest.mark.parametrize("user", ["a,b", "=2C", "=3D2C", "=", ",="])
def test_names_are_escaped(user: str) -> None:
    assert "," not in sasl_name(user)
    assert user_name(sasl_name(user)) == user


def test_the_text_of_a_repeated_authentication_says_so() -> None:
    failure = InvalidCredentials("SCRAM-SHA-512", "why")
    assert failure.text_when_repeated == (
        "Authentication failed during re-authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
    )
