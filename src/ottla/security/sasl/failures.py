"""InvalidCredentials: a failed authentication whose reason only the server's log may tell."""

from __future__ import annotations

from ottla.security.sasl.exchange import AuthenticationFailed


class InvalidCredentials(AuthenticationFailed):
    """The client is told the same text for every reason, as with Kafka. `reason` is for the log; it holds no secret."""

    def __init__(self, mechanism: str, reason: str) -> None:
        super().__init__(_text(mechanism, "authentication"))
        self.mechanism = mechanism
        self.reason = reason

    @property
    def text_when_repeated(self) -> str:
        """The text for a client that authenticates again on a connection (KIP-368)."""
        return _text(self.mechanism, "re-authentication")


def _text(mechanism: str, occasion: str) -> str:
    return f"Authentication failed during {occasion} due to invalid credentials with SASL mechanism {mechanism}"
