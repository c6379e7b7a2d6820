"""The server's side of a SASL exchange without I/O, as tests drive it."""

from __future__ import annotations

from typing import Protocol

from ottla.security.sasl.exchange import Authenticated


class ServerExchange(Protocol):
    """It is used once."""

    def respond(self, message: bytes) -> bytes | Authenticated:
        """Return the next challenge, or the end of the exchange; raise AuthenticationFailed."""
