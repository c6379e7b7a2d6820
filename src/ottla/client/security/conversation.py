"""The SASL conversation of one connection: SaslHandshake, then SaslAuthenticate until both sides have accepted.

A broker may end a session after a time (`connections.max.reauth.ms`, or the end of a token). Then the conversation is
repeated on the open connection before that (KIP-368), with credentials that are read anew.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from ottla.client.address import Address
from ottla.client.errors import AuthenticationError, ClientError, ConnectionLost, LoginPutOff, LoginRefused, error_code
from ottla.client.security.sasl import Sasl
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.security.sasl.exchange import AuthenticationFailed
from ottla.wire.message import Request, Response
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

R = TypeVar("R", bound=Response)
# A session is renewed after a random part of its lifetime, as Java clients do (KIP-368).
_RENEWED_AFTER: Final = (0.85, 0.95)
# Since this version the exchange is carried by SaslAuthenticate.
_HANDSHAKE_VERSION: Final = 1


class AuthenticatedConnection(Protocol):
    """What a session needs of its connection."""

    address: Address

    def ask_first(self, message: Request[R], *, version: int | None = None) -> asyncio.Future[R]:
        """Send a request before all that are held back."""

    def hold(self) -> Callable[[], None]:
        """Hold requests back until the returned function is called."""

    def fail(self, failure: ClientError) -> None:
        """Close the connection because of a failure."""


class SaslSession:
    """Authenticates a connection, and does so again before the broker would end the session."""

    def __init__(self, sasl: Sasl, connection: AuthenticatedConnection) -> None:
        self._sasl = sasl
        self._connection = connection
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Authenticate; raise AuthenticationError if the broker refuses, or does not prove its own identity (SCRAM)."""
        release = self._connection.hold()
        renew_after_s = await self._authenticate()
        release()
        if renew_after_s is not None:
            self._timer = asyncio.get_running_loop().call_later(renew_after_s, self._renew)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._renewing is not None:
            self._renewing.cancel()

    def _renew(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self.begin())
        self._renewing.add_done_callback(self._renewed)

    def _renewed(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ClientError):
            self._connection.fail(error)
        elif error is not None:  # a defect must not leave requests waiting
            self._connection.fail(ConnectionLost(f"the session with {self._connection.address} ended: {error!r}"))

    async def _authenticate(self) -> float | None:
        """Return the seconds after which to do it again; None if the session does not end."""
        address, sasl, ask = self._connection.address, self._sasl, self._connection.ask_first
        handshake = await ask(SaslHandshakeRequest(mechanism=sasl.mechanism), version=_HANDSHAKE_VERSION)
        if handshake.error_code:
            raise AuthenticationError(_refused_handshake(address, sasl, handshake.error_code, handshake.mechanisms))
        # In threads: an exchange may ask for a token or a ticket, and SCRAM hashes the password some thousand times.
        exchange = await asyncio.to_thread(sasl.exchange, address.host)
        message = exchange.first()
        for _ in range(limits.SASL_ROUNDS_MAX):
            answer = await ask(SaslAuthenticateRequest(auth_bytes=message))
            if answer.error_code:
                why = answer.error_message or error_code(answer.error_code).name
                if answer.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
                    raise LoginPutOff(f"{address} has no room for {_who(sasl)}: {why}")
                raise LoginRefused(f"{address} refused {_who(sasl)}: {why}")
            try:
                response = await asyncio.to_thread(exchange.respond, bytes(answer.auth_bytes))
            except AuthenticationFailed as error:
                raise AuthenticationError(f"{address} did not prove its identity ({sasl.mechanism}): {error}") from None
            if response is None:
                return _renewal_s(answer.session_lifetime_ms)
            message = response
        raise AuthenticationError(f"{address} did not end the {sasl.mechanism} exchange")


def _renewal_s(lifetime_ms: int) -> float | None:
    if lifetime_ms <= 0:
        return None
    return lifetime_ms * random.uniform(*_RENEWED_AFTER) / 1000


def _refused_handshake(address: Address, sasl: Sasl, code: int, offered: list[str]) -> str:
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        names = ", ".join(sorted(offered)) or "none"
        return f"{address} does not offer {sasl.mechanism}; its mechanisms: {names}"
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        return f"{address} expects no SASL: its security.protocol is PLAINTEXT or SSL"
    return f"{address} refused the SASL handshake: {error_code(code).name}"


def _who(sasl: Sasl) -> str:
    return f"{sasl.mechanism} user {sasl.username}" if sasl.username else sasl.mechanism
