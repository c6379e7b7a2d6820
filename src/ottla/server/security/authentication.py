"""Authentication: the SASL conversation of one connection, from the choice of a mechanism to a proven principal.

A connection may authenticate again (KIP-368) with the same mechanism, and must be the same principal then. A failure
ends the conversation: the connection is closed after the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.failures import InvalidCredentials


class Accepted(NamedTuple):
    """The client is `principal`, for `lifetime_ms` (0: as long as the connection)."""

    principal: Principal
    message: bytes
    lifetime_ms: int


class Refused(NamedTuple):
    """The conversation has failed; the text is for the client, the reason for the log. Neither holds a secret."""

    code: ErrorCode
    text: str
    reason: str = ""
    claimed: str = ""  # the user that the client said to be, as it came


# The answer to one message of the client: a challenge, or the end.
SaslStep: TypeAlias = bytes | Accepted | Refused


class Conversation(Protocol):
    """The server's side of one exchange, which may need the outside world (keys of an identity provider, a ticket)."""

    @property
    def claimed(self) -> str:
        """The user that the client says it is; empty if it has not said so, or if the name may hold a secret."""

    def respond(self, message: bytes) -> bytes | Authenticated | Awaitable[bytes | Authenticated]:
        """Return the next challenge, or the end of the exchange; raise AuthenticationFailed."""


class ServedMechanism(NamedTuple):
    """`begin` begins an exchange; `reauthenticate_ms` is `connections.max.reauth.ms`, 0 for no end."""

    begin: Callable[[], Conversation]
    reauthenticate_ms: int


class Authentication:
    def __init__(
        self,
        now_served: Callable[[], Mapping[str, ServedMechanism]],
        *,
        failure_delay_ms: int,
        max_message_bytes: int,
        now_ms: Callable[[], int],
    ) -> None:
        """`now_served` returns the mechanisms as they are when a conversation begins: a connection may be older than a
        change of its listener's users.
        """
        self.failure_delay_ms = failure_delay_ms
        self.max_message_bytes = max_message_bytes
        self._now_served = now_served
        self._now_ms = now_ms
        self.mechanism = ""  # as the client has chosen it
        self._exchange: Conversation | None = None
        self._reauthenticate_ms = 0  # of the mechanism that was chosen
        self._proven: tuple[str, Principal] | None = None  # the mechanism and the principal of the first time
        self._messages = 0
        self.expects_raw_message = False  # whether messages come without a Kafka header (SaslHandshake version 0)

    @property
    def mechanisms(self) -> list[str]:
        return list(self._now_served())

    def begin(self, mechanism: str, *, raw: bool) -> ErrorCode:
        """Begin a conversation with the mechanism that the client has chosen."""
        if self._exchange is not None:
            return ErrorCode.ILLEGAL_SASL_STATE
        served = self._now_served().get(mechanism)
        if served is None:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self.mechanism = mechanism
        self._exchange = served.begin()
        self._reauthenticate_ms = served.reauthenticate_ms
        self._messages = 0
        self.expects_raw_message = raw
        return ErrorCode.NONE

    async def respond(self, message: bytes) -> SaslStep:
        """Return the answer to the client's next message."""
        exchange = self._exchange
        self._messages += 1
        if exchange is None:
            return Refused(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received without a SaslHandshake.")
        try:
            if self._messages > limits.SASL_MESSAGES_MAX:
                raise AuthenticationFailed("too many messages")
            answer = exchange.respond(message)
            if isinstance(answer, Awaitable):
                answer = await answer
            return answer if isinstance(answer, bytes) else self._accept(answer)
        except AuthenticationFailed as failure:
            self._exchange = None
            text = str(failure)
            if self._proven is not None and isinstance(failure, InvalidCredentials):
                text = failure.text_when_repeated
            return Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, text, failure.reason, exchange.claimed)

    def _accept(self, end: Authenticated) -> Accepted:
        if self._proven is not None and self._proven != (self.mechanism, end.principal):
            raise AuthenticationFailed("A connection cannot authenticate again as somebody else.")
        self._proven = self.mechanism, end.principal
        self._exchange = None
        self.expects_raw_message = False
        return Accepted(end.principal, end.message, self._lifetime_ms(end.expires_at_ms))

    def _lifetime_ms(self, expires_at_ms: int | None) -> int:
        """Return how long the identity lasts: as long as the token, and no longer than `connections.max.reauth.ms`."""
        limit_ms = self._reauthenticate_ms
        if expires_at_ms is None:
            return limit_ms
        left_ms = max(expires_at_ms - self._now_ms(), 1)
        return min(left_ms, limit_ms) if limit_ms else left_ms
