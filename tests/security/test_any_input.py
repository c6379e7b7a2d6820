"""Any input: parsers of tokens, keys, names and configurations raise their own errors and nothing else."""

from __future__ import annotations

import contextlib
import json

from hypothesis import example, given
from hypothesis import strategies as st
from tests.security.names import COMMON_NAME, EMAIL, attribute, name
from tests.security.tokens import CLAIMS, NOW_MS, encoded, jwk, jwks, rsa_key, token

from ottla.security.der import InvalidDer
from ottla.security.distinguished_names import subject_of
from ottla.security.java_regex.syntax import InvalidRule
from ottla.security.jwks import InvalidJwks, parse_jwks
from ottla.security.jwt import InvalidToken, TokenExpectations, check_token
from ottla.security.kerberos_names import KerberosName, KerberosRules
from ottla.security.name_rules import NoMatchingRule
from ottla.security.sasl.jaas import InvalidJaas, parse_jaas_line
from ottla.security.ssl_principal import SslPrincipalRules

KEYS = parse_jwks(jwks(jwk(rsa_key(), kid="one")))
UNSECURED = TokenExpectations(allow_unsecured=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
claims = st.dictionaries(st.sampled_from(["sub", "iss", "aud", "exp", "iat", "nbf", "scope", "x"]), values)
headers = st.dictionaries(
    st.sampled_from(["alg", "kid", "typ", "jwk", "crit"]), values | st.sampled_from(["none", "RS256", "one"])
)


@given(st.text(max_size=200))
def test_any_text_as_a_token(text: str) -> None:
    with contextlib.suppress(InvalidToken):
        check_token(text, KEYS, NOW_MS, UNSECURED)
        raise AssertionError("accepted")


@given(claims)
def test_any_claims(changed: dict[str, object]) -> None:
    for text in (token({**CLAIMS, **changed}), f"{encoded({'alg': 'none'})}.{encoded({**CLAIMS, **changed})}."):
        with contextlib.suppress(InvalidToken):
            valid = check_token(text, KEYS, NOW_MS, UNSECURED)
            assert valid.principal_name.encode() and valid.expires_at_ms > NOW_MS - 30_000


@given(headers, claims, st.text("AB-_=", max_size=8))
def test_any_header_is_refused_without_a_signature(
    header: dict[str, object], body: dict[str, object], end: str
) -> None:
    with contextlib.suppress(InvalidToken):
        check_token(f"{encoded(header)}.{encoded({**CLAIMS, **body})}.{end}", KEYS, NOW_MS, TokenExpectations())
        raise AssertionError("accepted")


@given(st.integers(0, 600), st.sampled_from("ABCxyz019-_.=+ \n\0é"))
def test_a_token_with_another_character_is_refused(place: int, char: str) -> None:
    good = token()
    changed = good[:place] + char + good[place + 1 :]
    if changed == good:
        return
    with contextlib.suppress(InvalidToken):
        check_token(changed, KEYS, NOW_MS, UNSECURED)
        raise AssertionError("accepted")


@given(
    values
    | st.fixed_dictionaries(
        {"keys": values | st.lists(st.dictionaries(st.sampled_from(["kty", "n", "e", "crv"]), values))}
    )
)
def test_any_json_as_keys(document: object) -> None:
    with contextlib.suppress(InvalidJwks):
        parse_jwks(json.dumps(document))


@given(st.binary(max_size=300))
@example(b"[" * 100_000)
def test_any_bytes_as_keys(document: bytes) -> None:
    with contextlib.suppress(InvalidJwks):
        parse_jwks(document)


@given(st.integers(0, 80), st.binary(max_size=4))
def test_any_bytes_as_a_certificate(place: int, change: bytes) -> None:
    body = b"\x02\x01\x01" * 4 + name([attribute(COMMON_NAME, 0x0C, b"alice"), attribute(EMAIL, 0x16, b"a@b")])
    fields = bytes([0x30, len(body)]) + body
    certificate = bytes([0x30, len(fields)]) + fields
    assert subject_of(certificate) == "CN=alice+1.2.840.113549.1.9.1=#1603614062"
    with contextlib.suppress(InvalidDer):
        assert subject_of(certificate[:place] + change + certificate[place + len(change) :]).encode()


@given(st.text(st.sampled_from("ab1.-_$=;\"'\\/* \n{}é@"), max_size=40))
def test_any_text_as_a_jaas_configuration(text: str) -> None:
    with contextlib.suppress(InvalidJaas):
        parse_jaas_line("a.Module required " + text)
    with contextlib.suppress(InvalidJaas):
        parse_jaas_line(text)


@example("$" + "0" * 5_000 + "]", "")
@example("(a)/$1" + "9" * 5_000, "a")
@given(st.text(st.sampled_from("ab1$\\(){}[]?<>*+^&|/@,LU:"), max_size=20), st.text(max_size=10))
def test_any_text_as_rules(text: str, subject: str) -> None:
    with contextlib.suppress(InvalidRule, NoMatchingRule):
        SslPrincipalRules(f"RULE:{text}/").name_of(subject)
    with contextlib.suppress(InvalidRule, NoMatchingRule):
        KerberosRules([f"RULE:[1:{text}"], "R").short_name(KerberosName(subject, None, "R"))
    with contextlib.suppress(InvalidRule, NoMatchingRule):
        KerberosRules([f"RULE:[1:$1]s/{text}"], "R").short_name(KerberosName(subject, None, "R"))
