"""JWTs: what is accepted, and one test for each way to forge or misuse a token."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.security.tokens import (
    CLAIMS,
    CURVE_OF,
    NOW_MS,
    claims,
    ec_key,
    encoded,
    jwk,
    jwks,
    key_for,
    rsa_key,
    sign,
    token,
)

from ottla.model import limits
from ottla.security.jwks import VerificationKey, encode_base64url, parse_jwks
from ottla.security.jwt import InvalidToken, TokenExpectations, UnknownKey, ValidToken, check_token

ISSUER = TokenExpectations(issuer="https://issuer")
SECONDS = NOW_MS // 1000
ALGORITHMS = [f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)]


def keys(*more: dict[str, object], algorithm: str = "RS256") -> tuple[VerificationKey, ...]:
    return parse_jwks(jwks(jwk(key_for(algorithm), kid="one"), *more))


def check(text: str, expectations: TokenExpectations = ISSUER, now_ms: int = NOW_MS) -> ValidToken:
    return check_token(text, keys(), now_ms, expectations)


def refused(text: str, reason: str, expectations: TokenExpectations = ISSUER) -> None:
    with pytest.raises(InvalidToken, match=reason) as failed:
        check(text, expectations)
    parts = [part for part in text.split(".") if len(part) > 10]
    assert not any(part in str(failed.value) for part in parts), "the reason must not repeat the token"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_of_each_algorithm_is_accepted(algorithm: str) -> None:
    valid = check_token(token(algorithm=algorithm), keys(algorithm=algorithm), NOW_MS, ISSUER)
    assert valid == ValidToken("alice", (), CLAIMS["exp"] * 1000, CLAIMS["iat"] * 1000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_changed_token_of_each_algorithm_is_refused(algorithm: str) -> None:
    head, _, signature = token(algorithm=algorithm).split(".")
    with pytest.raises(InvalidToken, match="signature of the token is wrong"):
        check_token(f"{head}.{encoded(claims(sub='admin'))}.{signature}", keys(algorithm=algorithm), NOW_MS, ISSUER)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE"])
@pytest.mark.parametrize("signature", ["", "AAAA"])
def test_alg_none_is_refused(algorithm: str, signature: str) -> None:
    refused(f"{encoded({'alg': algorithm})}.{encoded(CLAIMS)}.{signature}", "no signature|algorithm")
    refused(f"{encoded({'alg': algorithm, 'kid': 'one'})}.{encoded(CLAIMS)}.{signature}", "no signature|algorithm")


def test_alg_none_is_accepted_only_if_it_is_allowed_and_without_signature() -> None:
    unsecured = TokenExpectations(allow_unsecured=True)
    unsigned = f"{encoded({'alg': 'none'})}.{encoded(claims(iat=None, aud='any'))}."
    assert check_token(unsigned, (), NOW_MS, unsecured).principal_name == "alice"
    refused(unsigned + "AAAA", "no signature", unsecured)
    refused(unsigned.replace(encoded({"alg": "none"}), encoded({"alg": "NONE"})), "algorithm", unsecured)
    refused(f"{encoded({'alg': 'none'})}.{encoded(claims(exp=SECONDS - 31))}.", "expired", unsecured)
    with pytest.raises(InvalidToken, match="signature of the token is wrong"):  # signed tokens are still verified
        check_token(token(key=rsa_key(1)), keys(), NOW_MS, unsecured)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("form", [PublicFormat.PKCS1, PublicFormat.SubjectPublicKeyInfo])
@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
def test_a_public_key_is_no_secret_of_an_hmac(algorithm: str, form: PublicFormat, encoding: Encoding) -> None:
    secret = rsa_key().public_key().public_bytes(encoding, form)

    def signer(message: bytes) -> bytes:
        return hmac.digest(secret, message, f"sha{algorithm[2:]}")

    refused(token(header={"alg": algorithm, "kid": "one"}, signer=signer), "algorithm")


def test_a_secret_key_in_the_jwks_is_not_used() -> None:
    secret = {"kty": "oct", "k": encode_base64url(b"x" * 64), "kid": "one"}
    assert parse_jwks(jwks(secret)) == ()
    forged = token(header={"alg": "HS256", "kid": "one"}, signer=lambda m: hmac.digest(b"x" * 64, m, hashlib.sha256))
    with pytest.raises(InvalidToken, match="algorithm"):
        check_token(forged, parse_jwks(jwks(secret)), NOW_MS, ISSUER)


@pytest.mark.parametrize(
    "algorithm", [None, 5, ["RS256"], {}, "", "rs256", "RS1", "ES256K", "EdDSA", "RS256 ", "RSA-OAEP"]
)
def test_an_unknown_algorithm_is_refused(algorithm: object) -> None:
    refused(token(header={"alg": algorithm, "kid": "one"}), "algorithm")
    refused(token(header={"kid": "one"}), "algorithm")


def test_a_key_verifies_only_algorithms_of_its_type_and_curve() -> None:
    for algorithm, curve in CURVE_OF.items():
        for other in set(CURVE_OF) - {algorithm}:
            key = ec_key(curve)

            def signer(message: bytes, key: object = key, other: str = other) -> bytes:
                return sign(key, other, message)  # type: ignore[arg-type]

            with pytest.raises(InvalidToken, match="signature of the token is wrong"):
                check_token(
                    token(header={"alg": other, "kid": "one"}, signer=signer),
                    keys(algorithm=algorithm),
                    NOW_MS,
                    ISSUER,
                )
    with pytest.raises(InvalidToken, match="signature of the token is wrong"):
        check_token(token(algorithm="ES256"), keys(algorithm="RS256"), NOW_MS, ISSUER)
    with pytest.raises(InvalidToken, match="signature of the token is wrong"):
        check_token(token(algorithm="RS256"), keys(algorithm="ES256"), NOW_MS, ISSUER)


def test_a_key_with_an_algorithm_is_used_for_that_one_only() -> None:
    only = parse_jwks(jwks(jwk(rsa_key(), kid="one", alg="PS256")))
    assert check_token(token(algorithm="PS256"), only, NOW_MS, ISSUER)
    with pytest.raises(InvalidToken, match="signature"):
        check_token(token(algorithm="RS256"), only, NOW_MS, ISSUER)


def test_an_unknown_key_is_told_apart() -> None:
    with pytest.raises(UnknownKey) as unknown:
        check(token(header={"alg": "RS256", "kid": "two" * 100}))
    assert unknown.value.kid == "two" * 100
    assert len(str(unknown.value)) < 200
    with pytest.raises(UnknownKey):
        check_token(token(), (), NOW_MS, ISSUER)


def test_a_key_is_found_by_its_id_among_several() -> None:
    several = keys(jwk(rsa_key(1), kid="two"), jwk(ec_key(), kid="three"), jwk(rsa_key(2)))
    assert check_token(token(), several, NOW_MS, ISSUER)
    assert check_token(token(header={"alg": "RS256", "kid": "two"}, key=rsa_key(1)), several, NOW_MS, ISSUER)
    with pytest.raises(InvalidToken, match="signature"):
        check_token(token(key=rsa_key(1)), several, NOW_MS, ISSUER)
    with pytest.raises(InvalidToken, match="does not name its key"):
        check_token(token(header={"alg": "RS256"}), several, NOW_MS, ISSUER)


def test_without_an_id_only_the_only_key_is_used() -> None:
    assert check(token(header={"alg": "RS256"}))
    with pytest.raises(InvalidToken, match="does not name its key"):
        check_token(token(header={"alg": "RS256"}), (), NOW_MS, ISSUER)


@pytest.mark.parametrize("kid", [5, [], {}, True])
def test_a_key_id_is_a_text(kid: object) -> None:
    refused(token(header={"alg": "RS256", "kid": kid}), "kid")


def test_keys_that_a_token_brings_along_are_ignored() -> None:
    own = {"jwk": jwk(rsa_key(1)), "jku": "https://attacker", "x5u": "https://attacker", "x5c": ["AAAA"]}
    refused(token(header={"alg": "RS256", "kid": "one", **own}, key=rsa_key(1)), "signature of the token is wrong")
    refused(token(header={"alg": "RS256", **own}, key=rsa_key(1)), "signature of the token is wrong")
    assert check(token(header={"alg": "RS256", "kid": "one", **own}))


@pytest.mark.parametrize("crit", [["exp"], [], None, "b64", ["b64"]])
def test_critical_extensions_are_refused(crit: object) -> None:
    refused(token(header={"alg": "RS256", "kid": "one", "crit": crit, "b64": False}), "crit")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": SECONDS - 30}, "expired 30000 ms ago"),
        ({"exp": 0}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": str(SECONDS + 600)}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": [SECONDS + 600]}, "exp"),
        ({"exp": -1}, "exp"),
        ({"exp": 10**30}, "exp"),
        ({"exp": 1e300}, "exp"),
        ({"nbf": SECONDS + 31}, "valid only in 31000 ms"),
        ({"nbf": "now"}, "nbf"),
        ({"nbf": SECONDS + 20, "exp": SECONDS + 10}, "expires before"),
        ({"iat": None}, "iat"),
        ({"iat": "now"}, "iat"),
        ({"iat": SECONDS + 601}, "expires before"),
        ({"iss": None}, "iss"),
        ({"iss": "https://other"}, "iss"),
        ({"iss": "https://issuer/"}, "iss"),
        ({"iss": ["https://issuer"]}, "iss"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": " \t"}, "sub"),
        ({"sub": 5}, "sub"),
        ({"sub": ["alice"]}, "sub"),
        ({"sub": "\ud800"}, "JSON"),
        ({"aud": "kafka"}, "aud"),
        ({"scope": 5}, "scope"),
        ({"scope": ""}, "scope"),
        ({"scope": ["a", 5]}, "scope"),
        ({"scope": ["a", ""]}, "scope"),
        ({"scope": ["a", "a"]}, "scope"),
    ],
)
def test_claims_that_are_refused(changed: dict[str, object], reason: str) -> None:
    refused(token(claims(**changed)), reason)


@pytest.mark.parametrize(
    "changed",
    [{"exp": SECONDS - 29}, {"exp": SECONDS - 29.5}, {"nbf": SECONDS + 30}, {"iat": SECONDS + 100}, {"nbf": 0}],
)
def test_the_clock_may_be_a_little_wrong(changed: dict[str, object]) -> None:
    assert check(token(claims(**changed))).principal_name == "alice"


def test_a_fraction_of_a_second_counts() -> None:
    assert check(token(claims(exp=SECONDS + 1.5))).expires_at_ms == NOW_MS + 1500
    over = check(token(claims(exp=SECONDS - 1, iat=SECONDS - 1)))
    assert over.expires_at_ms == NOW_MS + 29_000, "a token that is over here lasts for the difference of clocks"


@pytest.mark.parametrize(
    ("aud", "accepted"),
    [
        ("kafka", True),
        (["other", "kafka"], True),
        ("Kafka", False),
        (["other"], False),
        ([], False),
        (None, False),
        (5, False),
        (["kafka", 5], False),
        ({"kafka": 1}, False),
    ],
)
def test_the_audience_is_an_expected_one(aud: object, accepted: bool) -> None:
    expectations = TokenExpectations(audiences=frozenset({"kafka", "brokers"}))
    if accepted:
        assert check(token(claims(aud=aud)), expectations)
    else:
        refused(token(claims(aud=aud)), "aud", expectations)


def test_without_an_expected_issuer_any_is_accepted() -> None:
    assert check(token(claims(iss=None)), TokenExpectations())
    assert check(token(claims(iss="x")), TokenExpectations())
    refused(token(claims(iss=5)), "iss", TokenExpectations())


def test_names_and_scopes_come_from_the_claims_of_the_settings() -> None:
    expectations = TokenExpectations(sub_claim="client_id", scope_claim="scp")
    valid = check(token(claims(client_id=" bob\n", scp="read  write", scope=5)), expectations)
    assert (valid.principal_name, valid.scopes) == ("bob", ("read", "write"))
    assert check(token(claims(scope=["a", "b c"]))).scopes == ("a", "b c")
    refused(token(), "client_id", expectations)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        token().rpartition(".")[0],
        token() + ".",
        token() + ".AAAA.AAAA",
        token() + "=",
        token() + "\n",
        " " + token(),
        token().replace(".", "..", 1),
        f"{encoded([])}.{encoded(CLAIMS)}.AAAA",
        f"{encoded(b'{')}.{encoded(CLAIMS)}.AAAA",
        f"{encoded(bytes([0xFF]))}.{encoded(CLAIMS)}.AAAA",
        token(claims=b"[]"),
        token(claims=b""),
        token(claims=b"[" * 30_000),
        token(claims=json.dumps(CLAIMS).encode("utf-16")),
        token(claims=json.dumps(CLAIMS).encode()[:-1] + b',"sub":"admin"}'),
        token(claims=json.dumps(CLAIMS).encode()[:-1] + b',"x":{"a":1,"a":2}}'),
        token(claims=json.dumps(CLAIMS).encode()[:-1] + b',"x":NaN}'),
        token(claims=json.dumps(CLAIMS).encode()[:-1] + b',"x":1e999}'),
        token(claims=json.dumps(CLAIMS).encode()[:-1] + b',"x":' + b"9" * 5000 + b"}"),
        token(header=b'{"alg":"RS256","kid":"one","alg":"none"}'),
        token(header=b'{"alg":"none","kid":"one","alg":"RS256"}'),
        token(claims(padding="x" * limits.JWT_BYTES_MAX)),
        "ключ." + token().partition(".")[2],
    ],
)
def test_a_token_that_is_none_is_refused(text: str) -> None:
    refused(text, r"three parts|cannot be read|more than \d+ bytes")


def test_the_size_of_a_token_is_bounded() -> None:
    refused(token(), "more than 100 bytes", TokenExpectations(bytes_max=100))


def test_a_signature_has_one_spelling() -> None:
    good = token()
    last = good[-1]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [char for char in alphabet if char != last]
    for char in others:
        with pytest.raises(InvalidToken):
            check(good[:-1] + char)


@pytest.mark.parametrize("algorithm", list(CURVE_OF))
def test_empty_and_odd_signatures_are_refused(algorithm: str) -> None:
    size = len(sign(key_for(algorithm), algorithm, b""))
    for forged in (bytes(size), b"", bytes(size - 1), b"\xff" * size, bytes(size // 2) + b"\1" * (size // 2)):
        with pytest.raises(InvalidToken, match="signature"):
            check_token(
                token(algorithm=algorithm, signer=lambda _, forged=forged: forged),  # type: ignore[misc]
                keys(algorithm=algorithm),
                NOW_MS,
                ISSUER,
            )
