"""KeyDocument: the keys that an identity provider publishes (JWKS), read from its address or from a file.

Rule: `read` blocks, so a worker does it. The address is the operator's, but the answer is not trusted: its size and
the time for it are bounded.
"""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ottla.client.errors import AuthenticationError
from ottla.client.security.tls import Tls
from ottla.client.security.web import bounded_connection
from ottla.model import limits
from ottla.security.jwks import InvalidJwks, VerificationKey, parse_jwks

_OK = 200


class KeysUnavailable(Exception):
    """The keys cannot be read. One line for the log."""


@dataclass(frozen=True, slots=True)
class KeyDocument:
    """`tls` is None for the authorities of the operating system. The address may hold a secret: `shown` does not."""

    url: str = field(repr=False)
    tls: Tls | None

    def __post_init__(self) -> None:
        """Raise ValueError if the address is not one that can be read."""
        try:
            parts = urlsplit(self.url)
            _ = parts.port  # raises ValueError
            is_valid = parts.path if parts.scheme == "file" else parts.scheme in ("http", "https") and parts.hostname
        except ValueError:  # its text repeats a part of the address
            is_valid = False
        if not is_valid:
            raise ValueError("an http, https or file URL is needed")

    @property
    def shown(self) -> str:
        """The address for the log: without a user, a password and a query, which may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def read(self) -> tuple[VerificationKey, ...]:
        """Return the keys; raise KeysUnavailable."""
        try:
            keys = parse_jwks(self._text())
        except (OSError, http.client.HTTPException, AuthenticationError, InvalidJwks) as error:
            raise KeysUnavailable(str(error) or type(error).__name__) from None
        if not keys:
            raise KeysUnavailable("the JWKS has no key that a signature can be verified with")
        return keys

    def _text(self) -> bytes:
        parts = urlsplit(self.url)
        if parts.scheme == "file":
            with Path(unquote(parts.path)).open("rb") as file:
                return file.read(limits.JWKS_BYTES_MAX + 1)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with bounded_connection(parts, limits.JWKS_READ_S, self.tls) as connection:
            connection.request("GET", path, headers={"Accept": "application/json", "Connection": "close"})
            with connection.getresponse() as answer:
                if answer.status != _OK:
                    raise KeysUnavailable(f"the answer has status {answer.status}")
                return answer.read(limits.JWKS_BYTES_MAX + 1)
