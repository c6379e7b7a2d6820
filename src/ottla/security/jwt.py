"""JWTs as bearer tokens: `check_token` says who the bearer is, or why the token is refused.

The rules are those of Kafka's BrokerJwtValidator (and the library that it uses), with these additions: an algorithm is
accepted by a fixed list and never by what the token or a key merely implies; keys that a token brings along (`jwk`,
`jku`, `x5c`, `x5u`) are ignored; a document that can be read in two ways is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.model import limits
from ottla.security.jwks import SIGNATURE_ALGORITHMS, VerificationKey, decode_base64url
from ottla.security.strict_json import InvalidJson, parse_json_object

_PARTS = 3
_UNSECURED = "none"
_MILLIS = 1_000
_SECONDS_MAX = 2**53  # in milliseconds this fits into Java's long
# What Java's String.trim removes.
_JAVA_BLANKS = "".join(map(chr, range(0x21)))


class InvalidToken(Exception):
    """A token is refused. The text is for the server's log; it contains nothing of the token but its key id."""


class UnknownKey(InvalidToken):
    """The token names a key that is not known (yet). Fetch the keys again, but not for every such token."""

    def __init__(self, kid: str) -> None:
        super().__init__(f"the token is signed with a key that is not known: {kid[:64]!r}")
        self.kid = kid


@dataclass(frozen=True, slots=True)
class TokenExpectations:
    """The settings `sasl.oauthbearer.*` that say which tokens are accepted.

    Without expected audiences, a token that names an audience is refused, as with Kafka.
    """

    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    clock_skew_ms: int = 30_000
    scope_claim: str = "scope"
    sub_claim: str = "sub"
    bytes_max: int = limits.JWT_BYTES_MAX
    allow_unsecured: bool = False  # accept tokens without a signature: for development only


class ValidToken(NamedTuple):
    principal_name: str
    scopes: tuple[str, ...]
    expires_at_ms: int
    issued_at_ms: int | None


def check_token(
    token: str, keys: Sequence[VerificationKey], now_ms: int, expectations: TokenExpectations
) -> ValidToken:
    """Return what a token says if it is valid; raise InvalidToken or UnknownKey."""
    if len(token) > expectations.bytes_max:
        raise InvalidToken(f"the token has more than {expectations.bytes_max} bytes")
    parts = token.split(".", _PARTS)
    if len(parts) != _PARTS:
        raise InvalidToken("the token does not have three parts")
    header = _document(parts[0], "header")
    if "crit" in header:
        raise InvalidToken("the token asks for extensions (crit) that are not known")
    algorithm = header.get("alg")
    secured = algorithm != _UNSECURED
    if secured:
        _check_signature(header, keys, parts)
    elif not expectations.allow_unsecured or parts[2]:
        raise InvalidToken("the token has no signature (alg none), which is not allowed")
    claims = _document(parts[1], "payload")
    _check_issuer(claims, expectations)
    if secured or expectations.audiences:
        _check_audience(claims, expectations)
    expires_at_ms, issued_at_ms = _check_times(claims, now_ms, expectations.clock_skew_ms, secured)
    principal_name = _name(claims.get(expectations.sub_claim), expectations.sub_claim)
    return ValidToken(principal_name, _scopes(claims, expectations.scope_claim), expires_at_ms, issued_at_ms)


def _document(part: str, name: str) -> dict[str, object]:
    try:
        return parse_json_object(decode_base64url(part))
    except (InvalidJson, ValueError) as invalid:
        raise InvalidToken(f"the {name} of the token cannot be read: {invalid}") from None


def _check_signature(header: dict[str, object], keys: Sequence[VerificationKey], parts: list[str]) -> None:
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in SIGNATURE_ALGORITHMS:
        raise InvalidToken("the token is not signed with an algorithm that is accepted (RS, PS or ES; 256, 384 or 512)")
    if kid is None and len(keys) != 1:
        raise InvalidToken(f"the token does not name its key (kid), and there are {len(keys)} keys")
    if not isinstance(kid, str | None):
        raise InvalidToken("the key id (kid) of the token is not a text")
    named = [key for key in keys if kid is None or key.kid == kid]
    if not named:
        raise UnknownKey(kid or "")
    try:
        signature = decode_base64url(parts[2])
    except ValueError as invalid:
        raise InvalidToken(f"the signature of the token cannot be read: {invalid}") from None
    message = f"{parts[0]}.{parts[1]}".encode()
    if not any(key.fits(algorithm) and key.verifies(algorithm, signature, message) for key in named):
        raise InvalidToken("the signature of the token is wrong")


def _check_issuer(claims: dict[str, object], expectations: TokenExpectations) -> None:
    issuer = claims.get("iss")
    if not isinstance(issuer, str | None):
        raise InvalidToken("the issuer (iss) of the token is not a text")
    if expectations.issuer is not None and issuer != expectations.issuer:
        raise InvalidToken("the issuer (iss) of the token is not the expected one")


def _check_audience(claims: dict[str, object], expectations: TokenExpectations) -> None:
    audience = claims.get("aud")
    named = [audience] if isinstance(audience, str) else [] if audience is None else audience
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise InvalidToken("the audience (aud) of the token is not a text or a list of texts")
    if (audience is not None or expectations.audiences) and expectations.audiences.isdisjoint(named):
        raise InvalidToken("the audience (aud) of the token is not an expected one")


def _check_times(claims: dict[str, object], now_ms: int, skew_ms: int, secured: bool) -> tuple[int, int | None]:
    expires_at_ms, not_before_ms, issued_at_ms = (_millis(claims, name) for name in ("exp", "nbf", "iat"))
    if expires_at_ms is None:
        raise InvalidToken("the token does not say when it expires (exp)")
    if issued_at_ms is None and secured:
        raise InvalidToken("the token does not say when it was issued (iat)")
    if now_ms - skew_ms >= expires_at_ms:
        raise InvalidToken(f"the token has expired {now_ms - expires_at_ms} ms ago")
    if not_before_ms is not None and now_ms + skew_ms < not_before_ms:
        raise InvalidToken(f"the token is valid only in {not_before_ms - now_ms} ms")
    if expires_at_ms < max(issued_at_ms or 0, not_before_ms or 0):
        raise InvalidToken("the token expires before it was issued or is valid")
    # A token that has expired is accepted because clocks may differ; so it lasts until that difference is used up.
    is_over_here = expires_at_ms <= now_ms
    return expires_at_ms + skew_ms if is_over_here else expires_at_ms, issued_at_ms


def _millis(claims: dict[str, object], name: str) -> int | None:
    """Return a time, which tokens have in seconds, as an integer or with a fraction."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(f"the claim {name} of the token is not a number")
    if not 0 <= value <= _SECONDS_MAX:
        raise InvalidToken(f"the claim {name} of the token is not a time")
    return int(value * _MILLIS)


def _name(value: object, claim: str) -> str:
    name = value.strip(_JAVA_BLANKS) if isinstance(value, str) else ""
    if not name:
        raise InvalidToken(f"the token does not have a name in its claim {claim}")
    return name


def _scopes(claims: dict[str, object], claim: str) -> tuple[str, ...]:
    """Return the scopes: of a list, or of a text with spaces between them."""
    value = claims.get(claim, [])
    listed = value.split() or [""] if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise InvalidToken(f"the claim {claim} of the token is not a text or a list of texts")
    scopes = tuple(_name(each, claim) for each in listed)
    if len(set(scopes)) != len(scopes):
        raise InvalidToken(f"the claim {claim} of the token repeats a scope")
    return scopes
