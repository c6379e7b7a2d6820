"""Keys and tokens for tests: made with `cryptography` directly, so that they can be wrong in every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from ottla.security.jwks import encode_base64url

NOW_MS = 1_800_000_000_000
CLAIMS = {"sub": "alice", "iss": "https://issuer", "exp": NOW_MS // 1000 + 600, "iat": NOW_MS // 1000 - 60}
_HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_CURVES = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
CURVE_OF = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(curve: str = "P-256", number: int = 0) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(_CURVES[curve])


def key_for(algorithm: str) -> PrivateKey:
    return ec_key(CURVE_OF[algorithm]) if algorithm in CURVE_OF else rsa_key()


def number(value: int, size: int | None = None) -> str:
    return encode_base64url(value.to_bytes(size or (value.bit_length() + 7) // 8))


def jwk(key: PrivateKey, **members: object) -> dict[str, object]:
    if isinstance(key, rsa.RSAPrivateKey):
        public = key.public_key().public_numbers()
        return {"kty": "RSA", "n": number(public.n), "e": number(public.e), **members}
    point = key.public_key().public_numbers()
    name = next(name for name, curve in _CURVES.items() if curve.name == key.curve.name)
    size = (key.curve.key_size + 7) // 8
    return {"kty": "EC", "crv": name, "x": number(point.x, size), "y": number(point.y, size), **members}


def jwks(*keys: dict[str, object]) -> str:
    return json.dumps({"keys": keys})


def encoded(document: object) -> str:
    return encode_base64url(document if isinstance(document, bytes) else json.dumps(document).encode())


def sign(key: PrivateKey, algorithm: str, message: bytes) -> bytes:
    hashed = _HASHES[algorithm[2:]]
    if isinstance(key, ec.EllipticCurvePrivateKey):
        size = (key.curve.key_size + 7) // 8
        return b"".join(part.to_bytes(size) for part in decode_dss_signature(key.sign(message, ec.ECDSA(hashed))))
    if algorithm.startswith("PS"):
        return key.sign(message, padding.PSS(padding.MGF1(hashed), padding.PSS.DIGEST_LENGTH), hashed)
    return key.sign(message, padding.PKCS1v15(), hashed)


def token(
    claims: object = None,
    header: object = None,
    key: PrivateKey | None = None,
    algorithm: str = "RS256",
    signer: Callable[[bytes], bytes] | None = None,
) -> str:
    """A token; `claims` and `header` are documents or bytes, and everything that is not given is as it should be."""
    head: Any = {"alg": algorithm, "kid": "one"} if header is None else header
    unsigned = f"{encoded(head)}.{encoded(CLAIMS if claims is None else claims)}"
    made = signer(unsigned.encode()) if signer else sign(key or key_for(algorithm), algorithm, unsigned.encode())
    return f"{unsigned}.{encode_base64url(made)}"


def claims(**changed: object) -> dict[str, object]:
    """The claims of a valid token, changed; None takes a claim away."""
    return {name: value for name, value in {**CLAIMS, **changed}.items() if value is not None}
