"""Answers to the messages of a SASL conversation, in a Kafka response or without one, and what follows from them.

A failure is answered after `connection.failed.authentication.delay.ms`, so that passwords cannot be tried quickly, and
the connection is closed then. Nothing else of the connection is handled meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context, SaslClient
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.api.security.tenant_connections import refusal_of
from ottla.server.api.turns import hold_while
from ottla.server.loop.later import Answer, Disconnect
from ottla.server.security.authentication import Accepted, Refused, SaslStep
from ottla.server.security.logins import printable
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateResponse

log = logging.getLogger(__name__)


def authenticate(message: bytes, context: Context, client: SaslClient) -> Answer[SaslAuthenticateResponse]:
    """Return the response to a SaslAuthenticate request."""
    return hold_while(context, _authenticate(message, context, client))


def authenticate_raw(message: bytes, context: Context, client: SaslClient) -> Awaitable[Forwarded]:
    """Return the answer to a message without a Kafka header, as after SaslHandshake version 0."""
    return hold_while(context, _authenticate_raw(message, context, client))


async def _authenticate(message: bytes, context: Context, client: SaslClient) -> SaslAuthenticateResponse:
    step = await _step(message, context, client)
    if isinstance(step, Refused):
        return SaslAuthenticateResponse(error_code=step.code, error_message=step.text, auth_bytes=b"")
    if isinstance(step, Accepted):
        return SaslAuthenticateResponse(
            error_code=ErrorCode.NONE,
            error_message=None,
            auth_bytes=step.message,
            session_lifetime_ms=step.lifetime_ms,
        )
    return SaslAuthenticateResponse(error_code=ErrorCode.NONE, error_message=None, auth_bytes=step)


async def _authenticate_raw(message: bytes, context: Context, client: SaslClient) -> Forwarded:
    step = await _step(message, context, client)
    if isinstance(step, Refused):
        # Nothing is sent: without a Kafka header no bytes say that it failed, and empty ones say that it succeeded.
        raise Disconnect("it did not authenticate")
    return Forwarded(step.message if isinstance(step, Accepted) else step)


async def _step(message: bytes, context: Context, client: SaslClient) -> SaslStep:
    step = await client.authentication.respond(message)
    if isinstance(step, Refused):
        await refuse(context, client, step)
    elif isinstance(step, Accepted):
        context.principal = step.principal
        refusal = refusal_of(context)
        if refusal is not None:
            # Clients try again; SASL_AUTHENTICATION_FAILED would be final for them.
            step = Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, refusal, claimed=step.principal.name)
            await refuse(context, client, step)
            return step
        address, listener = context.connection.remote_address[0], context.connection.listener
        context.security.logins.succeeded(listener, client.authentication.mechanism, address, str(step.principal))
        client.authenticated(step.lifetime_ms)
    return step


async def refuse(context: Context, client: SaslClient, step: Refused) -> None:
    """Wait for the delay of failures, and have the connection closed after its answer."""
    address, listener = context.connection.remote_address[0], context.connection.listener
    reason = step.reason or step.text or step.code.name
    claimed = f" as {printable(step.claimed)!r}" if step.claimed else ""
    log.info("%s did not authenticate%s on listener %s: %s", address, claimed, listener, printable(reason))
    context.security.logins.failed(listener, client.authentication.mechanism, address, step.claimed, reason)
    await asyncio.sleep(client.authentication.failure_delay_ms / 1000)
    client.close_after_answer()
