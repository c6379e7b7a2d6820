"""JWKS documents: keys that are used, keys that are left out, documents that are refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.security.tokens import ec_key, jwk, jwks, number, rsa_key

from ottla.model import limits
from ottla.security.jwks import InvalidJwks, decode_base64url, parse_jwks

CURVES = ("P-256", "P-384", "P-521")


def test_public_keys_are_read() -> None:
    found = parse_jwks(jwks(jwk(rsa_key(), kid="a", use="sig", alg="RS256"), *(jwk(ec_key(c), kid=c) for c in CURVES)))
    assert [(key.kid, key.algorithm) for key in found] == [("a", "RS256"), *((curve, None) for curve in CURVES)]
    assert found[0].key.public_numbers() == rsa_key().public_key().public_numbers()
    assert found[3].key.public_numbers() == ec_key("P-521").public_key().public_numbers()


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
        {"kty": ["RSA"]},
        jwk(rsa_key(), use="enc"),
        jwk(rsa_key(), key_ops=["encrypt"]),
        jwk(rsa_key(), key_ops="verify"),
        jwk(rsa_key(), kid=5),
        jwk(rsa_key(), alg=["RS256"]),
        jwk(rsa_key(), n="AAAA"),
        jwk(rsa_key(), n=5),
        jwk(rsa_key(), n="+++="),
        jwk(rsa_key(), e=number(1)),
        jwk(rsa_key(), e=number(2)),
        jwk(rsa_key(), e=number(2**64 + 1)),
        jwk(rsa_key(bits=1024)),
        jwk(rsa_key(), n=number((1 << (limits.JWK_RSA_BITS_MAX + 8)) + 1)),
        jwk(ec_key(), x="AAAA"),
        jwk(ec_key(), crv="P-384"),
        jwk(ec_key(), crv="secp256k1"),
        jwk(ec_key(), crv=["P-256"]),
        {**jwk(ec_key()), "y": jwk(ec_key())["x"]},
    ],
)
def test_a_key_that_cannot_be_used_is_left_out(entry: dict[str, object]) -> None:
    assert [key.kid for key in parse_jwks(jwks(entry, jwk(rsa_key(), kid="good")))] == ["good"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys":{}}',
        '{"keys":[5]}',
        '{"keys":[],"keys":[]}',
        '{"keys":null}',
        b"\xff",
        "[" * 100_000,
        json.dumps({"keys": [{}] * (limits.JWKS_KEYS_MAX + 1)}),
        " " * (limits.JWKS_BYTES_MAX + 1),
    ],
)
def test_a_document_that_is_no_jwks_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidJwks, match="JWKS"):
        parse_jwks(text)


@pytest.mark.parametrize(("text", "content"), [("", b""), ("AA", b"\0"), ("_-8", b"\xff\xef"), ("AAAA", b"\0\0\0")])
def test_base64url(text: str, content: bytes) -> None:
    assert decode_base64url(text) == content


@pytest.mark.parametrize("text", ["A", "AB", "A=", "AA==", "/+8", "AA AA", "AA\n", "ÄÄ", "AAAAA"])
def test_what_is_not_base64url(text: str) -> None:
    with pytest.raises(ValueError, match="base64url"):
        decode_base64url(text)


def test_cryptography_is_not_loaded_before_there_are_keys() -> None:
    modules = ("jwt", "jwks", "sasl.oauthbearer", "sasl.plain", "sasl.scram.server", "sasl.jaas", "ssl_principal")
    imports = "; ".join(
        f"import ottla.security.{module}" for module in (*modules, "distinguished_names", "kerberos_names")
    )
    program = f"import sys; {imports}; print([name for name in sys.modules if name.startswith('cryptography')])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
