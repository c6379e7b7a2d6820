"""A listener with OAUTHBEARER: tokens that are accepted or refused, and keys of a provider that changes or fails."""

from __future__ import annotations

import hmac
import json
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.security.tokens import ec_key, encoded, jwk, jwks, number, rsa_key, token
from tests.server.security.oauth_settings import AUDIENCE, LOGIN, UNSECURED, claims, listener, present, signed
from tests.server.security.secured import MODULES, Certificates, SaslListeners
from tests.support.processes.key_provider import KeyProvider
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import until

from ottla.client.security.tokens import TokenEndpoint
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.server.security.peer_security import towards_brokers
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

Start = Callable[..., EmbeddedBroker]
Connect = Callable[[str], RawConnection]
ONE = jwk(rsa_key(), kid="one", use="sig", alg="RS256")
CURVE = jwk(ec_key(), kid="curve")
METADATA = MetadataRequest(topics=[])
REFUSAL = b'{"status":"invalid_token"}'


@pytest.fixture
def provider() -> Iterator[KeyProvider]:
    made = KeyProvider(jwks(ONE, CURVE))
    yield made
    made.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[EmbeddedBroker] = []

    def begin(settings: dict[str, str]) -> EmbeddedBroker:
        started.append(EmbeddedBroker(tmp_path / "data", settings).start())
        return started[-1]

    yield begin
    for broker in started:
        broker.stop()


def accepted_as(broker: EmbeddedBroker, bearer: str, connect: Connect = RawConnection) -> str:
    """The principal of whoever shows this token."""
    with connect(broker.bootstrap) as connection:
        answer = present(connection, bearer)
        assert (answer.error_code, answer.auth_bytes) == (0, b""), answer
        assert connection.call(METADATA, 12).brokers  # type: ignore[attr-defined]
        assert broker.node is not None
        (known,) = {str(each.context.principal) for each in broker.node.connections.connections if each.context.sasl}
        return known


def is_refused(broker: EmbeddedBroker, bearer: str | bytes, connect: Connect = RawConnection) -> bool:
    """Whether a token is refused as RFC 7628 says: a document, one byte from the client, then the failure."""
    with connect(broker.bootstrap) as connection:
        answer = present(connection, bearer)
        if answer.error_code == 0:
            if answer.auth_bytes != REFUSAL:
                return False
            answer = connection.call(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        with pytest.raises((Closed, ConnectionError)):
            connection.call(METADATA, 12)
        return True


def test_tokens_of_each_kind_of_key(start: Start, provider: KeyProvider) -> None:
    broker = start(listener(provider.url))
    assert accepted_as(broker, signed()) == "User:alice"
    assert accepted_as(broker, signed("curve", ec_key(), "ES256", sub="bob")) == "User:bob"
    assert accepted_as(broker, signed(aud=["other", AUDIENCE])) == "User:alice"
    assert provider.asked == 1, "keys are kept"


def with_hmac(content: bytes) -> bytes:
    """A signature with the public key as if it were a secret."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return hmac.digest(public, content, "sha256")


def tampered() -> str:
    head, _, signature = signed().split(".")
    return f"{head}.{encoded(claims(sub='admin'))}.{signature}"


ATTACKS: dict[str, Callable[[], str | bytes]] = {
    "another key": lambda: signed(key=rsa_key(1)),
    "tampered": tampered,
    "expired": lambda: signed(exp=int(claims(-100)["iat"]), iat=int(claims(-200)["iat"])),  # type: ignore[call-overload]
    "not valid yet": lambda: signed(nbf=claims(100)["iat"]),
    "without expiry": lambda: signed(exp=None),
    "another issuer": lambda: signed(iss="https://other.test"),
    "no issuer": lambda: signed(iss=None),
    "another audience": lambda: signed(aud="other"),
    "no audience": lambda: signed(aud=None),
    "nobody": lambda: signed(sub=None),
    "a blank name": lambda: signed(sub=" "),
    "alg none": lambda: token(claims(), {"alg": "none"}, signer=lambda _: b""),
    "alg none with a signature": lambda: token(claims(), {"alg": "none", "kid": "one"}, algorithm="RS256"),
    "HS256 with the public key": lambda: token(claims(), {"alg": "HS256", "kid": "one"}, signer=with_hmac),
    "a key of its own": lambda: token(claims(), {"alg": "RS256", "jwk": jwk(rsa_key(1))}, rsa_key(1)),
    "the algorithm of another key": lambda: token(claims(), {"alg": "ES256", "kid": "one"}, ec_key(), "ES256"),
    "an extension that must be understood": lambda: token(claims(), {"alg": "RS256", "kid": "one", "crit": ["x"]}),
    "too long": lambda: signed(padding="x" * limits.JWT_BYTES_MAX),
    "not a token": lambda: "abc",
    "not a message": lambda: b"\xff\xfe",
    "an empty message": lambda: b"",
    "another name than the token's": lambda: f"n,a=admin,\x01auth=Bearer {signed()}\x01\x01".encode(),
}


def test_attacks(start: Start, provider: KeyProvider, sasl: SaslListeners, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    broker = start(sasl.settings(listener(provider.url)))
    for name, attack in ATTACKS.items():
        made = attack()
        assert is_refused(broker, made, sasl.connect), name
        if isinstance(made, str):
            assert made not in caplog.text, name
    assert "the token has no signature (alg none)" in caplog.text, "the log tells why"
    assert "the audience (aud) of the token is not an expected one" in caplog.text
    assert accepted_as(broker, signed(), sasl.connect) == "User:alice", "none of them did harm"
    assert provider.asked == 1


def test_a_frame_that_is_too_long_closes_the_connection(start: Start, provider: KeyProvider) -> None:
    broker = start(listener(provider.url))
    with RawConnection(broker.bootstrap) as connection, pytest.raises((Closed, ConnectionError)):
        present(connection, b"x" * 600_000)


def test_claims_and_skew_as_set(start: Start, provider: KeyProvider) -> None:
    settings = listener(
        provider.url,
        sasl_oauthbearer_sub_claim_name="preferred_username",
        sasl_oauthbearer_scope_claim_name="roles",
        sasl_oauthbearer_clock_skew_seconds="120",
    )
    settings["sasl.oauthbearer.sub.claim.name"] = "client_id"
    broker = start(settings)
    past = claims(-60)["iat"]
    with RawConnection(broker.bootstrap) as connection:
        answer = present(connection, signed(client_id="app", exp=past, iat=past, roles=["a", "b"]))
        assert 1_000 < answer.session_lifetime_ms <= 60_000, "as long as the difference of clocks allows"
    assert accepted_as(broker, signed(client_id="app", exp=past, iat=past, roles=["a", "b"])) == "User:app"
    assert is_refused(broker, signed(roles=[]))
    assert is_refused(broker, signed(client_id="app", roles=7))


def test_a_session_lasts_as_long_as_its_token(start: Start, provider: KeyProvider, sasl: SaslListeners) -> None:
    broker = start(sasl.settings(listener(provider.url) | {"sasl.oauthbearer.clock.skew.seconds": "0"}))
    with sasl.connect(broker.bootstrap) as connection:
        answer = present(connection, signed(exp=claims(3)["iat"]))
        assert 0 < answer.session_lifetime_ms <= 3_000
        again = present(connection, signed(exp=claims(300)["iat"]))
        assert 290_000 < again.session_lifetime_ms <= 300_000, "the time begins anew"
        other = present(connection, signed(sub="bob"))
        assert other.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, "nobody becomes somebody else"
    with sasl.connect(broker.bootstrap) as connection:
        present(connection, signed())
        broker.clock.advance("601s")
        with pytest.raises((Closed, ConnectionError)):
            connection.call(METADATA, 12)


def test_the_shorter_of_token_and_setting(start: Start, provider: KeyProvider) -> None:
    settings = listener(provider.url)
    settings["listener.name.sasl_plaintext.oauthbearer.connections.max.reauth.ms"] = "60000"
    broker = start(settings)
    with RawConnection(broker.bootstrap) as connection:
        assert present(connection, signed()).session_lifetime_ms == 60_000
        assert present(connection, signed(exp=claims(30)["iat"])).session_lifetime_ms <= 30_000


def test_rotated_keys(start: Start, provider: KeyProvider) -> None:
    broker = start(listener(provider.url))
    assert accepted_as(broker, signed()) == "User:alice"
    provider.document = jwks(jwk(rsa_key(1), kid="two"))
    broker.clock.advance("10s")
    assert accepted_as(broker, signed("two", rsa_key(1))) == "User:alice", "an unknown key is looked for at once"
    assert is_refused(broker, signed()), "the provider has taken the old key away"


def test_a_key_that_is_new_just_after_a_read(start: Start, provider: KeyProvider) -> None:
    """Its token is held up until the keys may be read again, and not refused."""
    broker = start(listener(provider.url))
    assert accepted_as(broker, signed()) == "User:alice"
    provider.document = jwks(jwk(rsa_key(1), kid="two"))
    with ThreadPoolExecutor(1) as threads, RawConnection(broker.bootstrap) as connection:
        waiting = threads.submit(present, connection, signed("two", rsa_key(1)))
        until(lambda: (broker.clock.advance("1s"), waiting.done())[1])
        assert waiting.result().error_code == 0
    assert provider.asked == 2


def test_keys_are_read_again_by_and_by(start: Start, provider: KeyProvider) -> None:
    broker = start(listener(provider.url, sasl_oauthbearer_jwks_endpoint_refresh_ms="60000"))
    assert accepted_as(broker, signed()) == "User:alice"
    provider.document = jwks(jwk(rsa_key(1), kid="two"))
    until(lambda: (broker.clock.advance("61s"), provider.asked)[1], lambda asked: asked > 1)
    until(lambda: is_refused(broker, signed(exp=claims(1e6)["iat"])))


def test_floods_of_unknown_keys_cause_few_reads(
    start: Start, provider: KeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUTHENTICATION_S", 1_000_000)  # the clock runs ahead of clients that have no CPU
    broker = start(listener(provider.url))
    assert accepted_as(broker, signed()) == "User:alice"
    with ThreadPoolExecutor(10) as threads:
        refused = [threads.submit(is_refused, broker, signed(f"kid-{number}")) for number in range(100)]
        turns = 0
        while not all(each.done() for each in refused):
            broker.clock.advance("1s")
            turns += 1
        assert all(each.result() for each in refused)
    assert provider.asked <= 2 + turns * 1_000 // limits.JWKS_READ_AGAIN_MS + 2
    assert provider.most_at_once == 1


def test_many_clients_wait_for_one_read(start: Start, provider: KeyProvider) -> None:
    broker = start(listener(provider.url))
    provider.hold()
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(accepted_or_not, broker, signed()) for _ in range(8)]
        until(lambda: provider.asked)
        assert not any(each.done() for each in waiting)
        provider.release()
        assert all(each.result() for each in waiting)
    assert provider.asked == 1


def accepted_or_not(broker: EmbeddedBroker, bearer: str) -> bool:
    with RawConnection(broker.bootstrap) as connection:
        answer = present(connection, bearer)
        return (answer.error_code, answer.auth_bytes) == (0, b"")


def test_a_provider_that_is_down(start: Start, provider: KeyProvider, caplog: pytest.LogCaptureFixture) -> None:
    settings = listener(provider.url)
    settings |= {f"sasl.oauthbearer.jwks.endpoint.retry.backoff.{end}": "3600000" for end in ("ms", "max.ms")}
    provider.status = 503
    broker = start(settings)
    for _ in range(5):
        assert is_refused(broker, signed()), "without keys nobody gets in"
    assert provider.asked == 1, "a provider in trouble is left alone"
    assert "no client can log in with a token: the answer has status 503" in caplog.text
    provider.status = 200
    broker.clock.advance("3601s")
    fresh = signed(exp=claims(1e6)["iat"])
    until(lambda: accepted_or_not(broker, fresh))
    provider.status = 503
    until(lambda: (broker.clock.advance("3601s"), provider.asked)[1], lambda asked: asked > 2)
    assert accepted_or_not(broker, fresh), "the old keys stay"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"x" * (limits.JWKS_BYTES_MAX + 1), "more than"),
        ("[]", "cannot be read"),
        ("<html>", "cannot be read"),
        (json.dumps({"keys": []}), "no key that a signature can be verified with"),
        (jwks({"kty": "oct", "kid": "one", "k": number(2**255)}), "no key that a signature can be verified with"),
    ],
)
def test_documents_that_are_not_keys(
    start: Start, provider: KeyProvider, caplog: pytest.LogCaptureFixture, document: str | bytes, why: str
) -> None:
    provider.document = document
    broker = start(listener(provider.url))
    assert is_refused(broker, signed())
    assert why in caplog.text


def test_a_provider_that_never_ends(
    start: Start, provider: KeyProvider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "JWKS_READ_S", 0.2)
    provider.hold()
    broker = start(listener(provider.url))
    assert is_refused(broker, signed())
    assert "the keys for tokens cannot be read" in caplog.text


def test_keys_in_a_file(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "the keys.json"
    path.write_text(jwks(ONE))
    broker = start(listener(path.as_uri()))
    assert accepted_as(broker, signed()) == "User:alice"
    path.write_text(jwks(CURVE))
    broker.clock.advance("10s")
    assert accepted_as(broker, signed("curve", ec_key(), "ES256")) == "User:alice"


def test_keys_over_tls(start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificates, strangers = (Certificates.make(tmp_path / name) for name in ("own", "strangers"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.node()["ssl.keystore.location"])
    provider = KeyProvider(jwks(ONE), context)
    try:
        broker = start(listener(provider.url) | certificates.ours())
        assert accepted_as(broker, signed()) == "User:alice"
        broker.stop()
        broker = start(listener(provider.url) | strangers.ours())
        assert is_refused(broker, signed())
        assert "certificate verify failed" in caplog.text
        broker.stop()
        settings = listener(provider.url) | strangers.ours()
        trusted = f'{LOGIN} ssl.truststore.type="PEM" ssl.truststore.location="{certificates.trusted}";'
        settings["listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"] = (
            trusted.removesuffix(";") + ' unsecuredLoginStringClaim_sub="node";'
        )
        assert accepted_as(start(settings), signed()) == "User:alice", "the login module's own truststore comes first"
    finally:
        provider.close()


def test_unsecured_tokens_only_if_asked_for(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    settings = listener("")
    login = f'{LOGIN} unsecuredLoginStringClaim_sub="node" unsecuredValidatorRequiredScope="write read";'
    settings["listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"] = login
    settings["listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"] = UNSECURED
    broker = start(settings)
    assert "accepts tokens that nobody has signed" in caplog.text

    def unsigned(**changed: object) -> str:
        return token(claims(**changed), {"alg": "none"}, signer=lambda _: b"")

    assert accepted_as(broker, unsigned(scope=["read", "write", "more"])) == "User:alice"
    assert is_refused(broker, unsigned(scope="read"))
    assert is_refused(broker, unsigned())
    assert is_refused(broker, signed(scope=["read", "write"])), "there is no key for it"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"sasl.oauthbearer.jwks.endpoint.url": ""}, "jwks.endpoint.url is not set"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://x/y"}, "http, https or file URL"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "http://x:y/"}, "jwks.endpoint.url"),
        ({"sasl.server.callback.handler.class": "com.example.Mine"}, "Java code"),
        (
            {"sasl.oauthbearer.jwt.validator.class": f"{MODULES}.oauthbearer.ClientJwtValidator"},
            "BrokerJwtValidator, not",
        ),
        ({"listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": "nonsense"}, "control flag"),
    ],
)
def test_a_node_does_not_start_with_settings_that_cannot_be_followed(
    start: Start, provider: KeyProvider, changed: dict[str, str], problem: str
) -> None:
    with pytest.raises(Exception, match=problem):
        start(listener(provider.url) | changed)


def test_how_a_node_logs_in_elsewhere() -> None:
    prefix = "listener.name.sasl_plaintext.oauthbearer"
    settings = listener("file:/keys", node_id="1") | {
        f"{prefix}.sasl.jaas.config": f'{LOGIN} clientId="node" clientSecret="hush" scope="kafka";',
        f"{prefix}.sasl.oauthbearer.token.endpoint.url": "http://localhost:1/token",
    }
    security = towards_brokers(NodeConfig(settings))
    assert security is not None and security.sasl is not None
    source = security.sasl.tokens
    assert isinstance(source, TokenEndpoint)
    assert (source.url, source.client_id, source.scope) == ("http://localhost:1/token", "node", "kafka")
    assert "hush" not in repr(security)
    for changed, problem in (
        ({f"{prefix}.sasl.login.callback.handler.class": "com.example.Mine"}, "Java code"),
        ({"sasl.oauthbearer.jwt.retriever.class": f"{MODULES}.oauthbearer.JwtBearerJwtRetriever"}, "assertions"),
        ({f"{prefix}.sasl.jaas.config": f"{LOGIN};"}, "client.id"),
    ):
        with pytest.raises(ApiError, match=problem):
            towards_brokers(NodeConfig(settings | changed))
