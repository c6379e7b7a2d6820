"""Keys of a JWKS document (RFC 7517), and which algorithms of RFC 7518 verify a signature with them.

Only asymmetric algorithms exist here. So a token cannot be signed with a public key as if that were the secret of an
HMAC, and a key of the type `oct` (a secret) is not used. `cryptography` is loaded when keys are parsed or used.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model import limits
from ottla.security.strict_json import InvalidJson, parse_json_object

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

# Curves by JWK name: the name that `cryptography` gives them, and the bytes of a coordinate.
_CURVES: Final = {"P-256": ("secp256r1", 32), "P-384": ("secp384r1", 48), "P-521": ("secp521r1", 66)}
# Algorithms: the type of key, the bits of the hash, and the curve.
_ALGORITHMS: Final = {
    **{f"RS{bits}": ("RSA", bits, None) for bits in (256, 384, 512)},
    **{f"PS{bits}": ("RSA", bits, None) for bits in (256, 384, 512)},
    "ES256": ("EC", 256, "secp256r1"),
    "ES384": ("EC", 384, "secp384r1"),
    "ES512": ("EC", 512, "secp521r1"),
}
SIGNATURE_ALGORITHMS: Final = frozenset(_ALGORITHMS)


class InvalidJwks(ValueError):
    """A document is not a JWKS."""


class VerificationKey(NamedTuple):
    kid: str | None
    algorithm: str | None  # the only algorithm that the key may be used with; None: every one of its type
    key: RSAPublicKey | EllipticCurvePublicKey

    def fits(self, algorithm: str) -> bool:
        """Return whether signatures of this algorithm may be verified with the key."""
        curve = _ALGORITHMS[algorithm][2]
        own_curve = _curve_name(self.key)
        return self.algorithm in (None, algorithm) and own_curve == curve

    def verifies(self, algorithm: str, signature: bytes, message: bytes) -> bool:
        """Return whether the signature is the one of the message. The algorithm must fit the key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        try:
            if isinstance(self.key, RSAPublicKey):
                _verify_rsa(self.key, algorithm, signature, message)
            else:
                _verify_ec(self.key, algorithm, signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def parse_jwks(text: str | bytes) -> tuple[VerificationKey, ...]:
    """Parse a JWKS; leave out keys that cannot verify signatures here, as RFC 7517 asks for. Raise InvalidJwks."""
    document = text.encode() if isinstance(text, str) else text
    if len(document) > limits.JWKS_BYTES_MAX:
        raise InvalidJwks(f"the JWKS has more than {limits.JWKS_BYTES_MAX} bytes")
    try:
        entries = parse_json_object(document).get("keys")
    except InvalidJson as invalid:
        raise InvalidJwks(f"the JWKS cannot be read: {invalid}") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidJwks("the JWKS has no list of keys in its member 'keys'")
    if len(entries) > limits.JWKS_KEYS_MAX:
        raise InvalidJwks(f"the JWKS has more than {limits.JWKS_KEYS_MAX} keys")
    return tuple(key for entry in entries if (key := _key(entry)) is not None)


def decode_base64url(text: str) -> bytes:
    """Decode base64url without padding, in its only canonical form; raise ValueError."""
    try:
        if not text.isascii() or any(char in text for char in "+/="):
            raise ValueError
        decoded = a2b_base64(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), strict_mode=True)
    except (Base64Error, ValueError):
        raise ValueError("it is not base64url") from None
    if encode_base64url(decoded) != text:
        raise ValueError("it is not base64url in its canonical form")
    return decoded


def encode_base64url(content: bytes) -> str:
    return b2a_base64(content, newline=False).decode().rstrip("=").replace("+", "-").replace("/", "_")


def _key(entry: dict[str, object]) -> VerificationKey | None:
    """Return the key, or None if it is not one that signatures may be verified with."""
    kid, algorithm, operations = entry.get("kid"), entry.get("alg"), entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    if not isinstance(kid, str | None) or not isinstance(algorithm, str | None):
        return None
    try:
        public = _rsa(entry) if entry.get("kty") == "RSA" else _elliptic(entry) if entry.get("kty") == "EC" else None
    except ValueError:
        return None
    return None if public is None else VerificationKey(kid, algorithm, public)


def _rsa(entry: dict[str, object]) -> RSAPublicKey | None:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    exponent, modulus = _number(entry, "e"), _number(entry, "n")
    if not limits.JWK_RSA_BITS_MIN <= modulus.bit_length() <= limits.JWK_RSA_BITS_MAX:
        return None
    return RSAPublicNumbers(exponent, modulus).public_key() if exponent <= limits.JWK_RSA_EXPONENT_MAX else None


def _elliptic(entry: dict[str, object]) -> EllipticCurvePublicKey | None:
    from cryptography.hazmat.primitives.asymmetric import ec

    name = entry.get("crv")
    if not isinstance(name, str) or name not in _CURVES:
        return None
    curves: dict[str, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
    return ec.EllipticCurvePublicNumbers(_number(entry, "x"), _number(entry, "y"), curves[name]).public_key()


def _number(entry: dict[str, object], member: str) -> int:
    text = entry.get(member)
    if not isinstance(text, str):
        raise ValueError(f"the key has no number {member}")
    return int.from_bytes(decode_base64url(text))


def _curve_name(key: RSAPublicKey | EllipticCurvePublicKey) -> str | None:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    return None if isinstance(key, RSAPublicKey) else key.curve.name


def _hash(algorithm: str) -> HashAlgorithm:
    from cryptography.hazmat.primitives import hashes

    known: dict[int, HashAlgorithm] = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}
    return known[_ALGORITHMS[algorithm][1]]


def _verify_rsa(key: RSAPublicKey, algorithm: str, signature: bytes, message: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric import padding

    hashed = _hash(algorithm)
    if algorithm.startswith("PS"):
        key.verify(signature, message, padding.PSS(padding.MGF1(hashed), padding.PSS.DIGEST_LENGTH), hashed)
    else:
        key.verify(signature, message, padding.PKCS1v15(), hashed)


def _verify_ec(key: EllipticCurvePublicKey, algorithm: str, signature: bytes, message: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    size = dict(_CURVES.values())[key.curve.name]
    if len(signature) != 2 * size:
        raise ValueError("the signature has another length")
    both = encode_dss_signature(int.from_bytes(signature[:size]), int.from_bytes(signature[size:]))
    key.verify(both, message, ec.ECDSA(_hash(algorithm)))
