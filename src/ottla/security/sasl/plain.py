"""PLAIN (RFC 4616): the client sends its name and its password, and the server compares."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping

from ottla.model import limits
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed

PLAIN = "PLAIN"
_NUL = "\0"
_FIELDS = 3
_REFUSED = "Authentication failed: Invalid username or password"

# Is given a user name and a password; returns the user's principal, or None if the two do not belong together.
PasswordCheck = Callable[[str, str], Principal | None]


class PlainServer:
    """One exchange."""

    def __init__(self, check: PasswordCheck) -> None:
        self._check = check
        self._over = False
        self.claimed = ""  # the user that the client says to be

    def respond(self, message: bytes) -> Authenticated:
        if self._over:
            raise AuthenticationFailed("Authentication failed: the exchange has ended already")
        self._over = True
        if len(message) > limits.PLAIN_MESSAGE_BYTES_MAX:
            raise AuthenticationFailed("Invalid SASL/PLAIN response: it is too long")
        try:
            fields = message.decode().split(_NUL, _FIELDS)
        except UnicodeDecodeError:
            raise AuthenticationFailed(_REFUSED) from None
        if len(fields) != _FIELDS:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(fields)}")
        authorization_id, user, password = fields
        self.claimed = user
        if not user:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        principal = self._check(user, password)
        if principal is None:
            raise AuthenticationFailed(_REFUSED)
        if authorization_id not in ("", user):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Authenticated(principal, b"")


class PlainClient:
    """One exchange."""

    def __init__(self, user: str, password: str, authorization_id: str = "") -> None:
        if not user or not password:
            raise ValueError("PLAIN needs a user name and a password")
        if any(_NUL in field for field in (user, password, authorization_id)):
            raise ValueError("the user name and the password of PLAIN must not contain NUL")
        self._message = _NUL.join((authorization_id, user, password)).encode()

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> None:
        """The server has accepted the password, else it would have closed the connection; PLAIN has no challenges."""


def check_against(passwords: Mapping[str, str]) -> PasswordCheck:
    """Return a check of passwords by user name, in time that does not depend on what is wrong."""

    def check(user: str, password: str) -> Principal | None:
        expected = passwords.get(user)
        given, wanted = (hashlib.sha256(text.encode()).digest() for text in (password, expected or ""))
        return Principal.user(user) if hmac.compare_digest(given, wanted) and expected is not None else None

    return check
