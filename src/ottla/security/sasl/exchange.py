"""What the two sides of a SASL exchange have in common, and its client's side, without I/O."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ottla.security.principal import Principal


class AuthenticationFailed(Exception):
    """The other side did not prove its identity. The text is shown to the client, so it holds no secret and does not
    tell whether a user exists. `reason` is for the log; it holds no secret either.
    """

    reason: str = ""


class Authenticated(NamedTuple):
    """The end of a server's exchange: who the client is, the last message to it, and when the identity expires."""

    principal: Principal
    message: bytes
    expires_at_ms: int | None = None  # milliseconds since 1970; None: as long as the connection


class ClientExchange(Protocol):
    """The client's side of one exchange. It is used once."""

    def first(self) -> bytes:
        """Return the first message to the server."""

    def respond(self, challenge: bytes) -> bytes | None:
        """Return the answer to a challenge; None if the exchange is complete. Raise AuthenticationFailed if the server
        did not prove its identity.
        """
