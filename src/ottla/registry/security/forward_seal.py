"""The caller of a forwarded request, signed by the instance that forwards it.

An instance that forwards a request does not pass the client's credentials on. It says who the client is, in a header,
and signs this together with the request: with HMAC-SHA-256 under the secret that all instances share.

Rules:
- Signed are: the URL of the instance that the request is for, method, path with parameters, a digest of the body, the
  caller, the time and a random number. Each part is preceded by its length, so that no two requests have the same text.
- The digest is in a header, so that a signature is checked before anything of the body is read. The body, when it has
  come, must have this digest.
- A signature is accepted once, and only for a short time. The random numbers of that time are remembered.
- Signatures are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.model import limits
from ottla.registry.security.caller import Caller
from ottla.security.principal import Principal

FORWARD_HEADER: Final = "X-Forward"  # marks a forwarded request
CALLER_HEADER: Final = "X-Forward-Caller"
SEAL_HEADER: Final = "X-Forward-Seal"
DIGEST_HEADER: Final = "X-Forward-Digest"
_NONCE_BYTES: Final = 18


class BadSeal(Exception):
    """A forwarded request is refused. The text is for the log."""


class SealedRequest(NamedTuple):
    """A request that is forwarded: `url` is that of the instance that gets it, `target` path and parameters, `digest`
    that of the body.
    """

    url: str
    method: str
    target: str
    digest: str

    @classmethod
    def of(cls, url: str, method: str, target: str, body: bytes) -> SealedRequest:
        return cls(url, method, target, digest_of(body))


class ForwardedCaller(NamedTuple):
    """What an instance says of a request's client."""

    caller: Caller
    time_ms: int
    nonce: str

    def encode(self) -> str:
        principal, host = self.caller
        fields = [principal.type, principal.name, principal.token_authenticated, host, self.time_ms, self.nonce]
        return urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> ForwardedCaller:
        try:
            kind, name, by_token, host, time_ms, nonce = json.loads(urlsafe_b64decode(text.encode("ascii")))
        except (ValueError, TypeError, RecursionError):
            raise BadSeal("its caller cannot be read") from None
        if not all(isinstance(each, str) for each in (kind, name, host, nonce)) or not isinstance(time_ms, int):
            raise BadSeal("its caller has a field of another type")
        return cls(Caller(Principal(kind, name, by_token is True), host), time_ms, nonce)


def digest_of(body: bytes) -> str:
    """Return the digest of a body as the header has it."""
    return hashlib.sha256(body).hexdigest()


def unsealed_headers(caller: Caller, now_ms: int) -> dict[str, str]:
    """Return the headers that name the caller, for an instance that trusts this one's certificate."""
    return {CALLER_HEADER: ForwardedCaller(caller, now_ms, secrets.token_urlsafe(_NONCE_BYTES)).encode()}


class ForwardSeal:
    def __init__(self, secret: str, now_ms: Callable[[], int]) -> None:
        self._secret = secret.encode()
        self._now_ms = now_ms
        self._seen: OrderedDict[str, int] = OrderedDict()  # random numbers, and until when they are remembered

    def headers(self, request: SealedRequest, caller: Caller) -> dict[str, str]:
        """Return the headers that name and sign the caller of a request."""
        told = unsealed_headers(caller, self._now_ms())
        signature = self._signature(request, told[CALLER_HEADER])
        return told | {DIGEST_HEADER: request.digest, SEAL_HEADER: signature}

    def open(self, request: SealedRequest, told: str, signature: str) -> Caller:
        """Return the caller of a request that was sealed, by its head. Raises BadSeal."""
        if not hmac.compare_digest(self._signature(request, told).encode(), signature.encode()):
            raise BadSeal("its signature is wrong")
        found = ForwardedCaller.decode(told)
        now_ms = self._now_ms()
        if abs(now_ms - found.time_ms) > limits.FORWARDED_AGE_MS_MAX:
            raise BadSeal(f"it was signed {now_ms - found.time_ms} ms ago: do the clocks of the instances agree?")
        self._note(found.nonce, now_ms)
        return found.caller

    def _note(self, nonce: str, now_ms: int) -> None:
        if nonce in self._seen:
            raise BadSeal("it was sent before")
        # A signature from the future is valid for up to twice the time.
        while self._seen and next(iter(self._seen.values())) < now_ms:
            self._seen.popitem(last=False)
        if len(self._seen) >= limits.FORWARDED_NONCES_MAX:
            raise BadSeal("too many requests were forwarded lately")
        self._seen[nonce] = now_ms + 2 * limits.FORWARDED_AGE_MS_MAX

    def _signature(self, request: SealedRequest, told: str) -> str:
        parts = [each.encode() for each in (*request, told)]
        text = b"".join(len(part).to_bytes(4) + part for part in parts)
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()
