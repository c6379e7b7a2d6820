"""Requests about delegation tokens: which connections may send them, and the answers that several handlers give."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ottla.cluster.commands.delegation_tokens import ExpireDelegationToken, RenewDelegationToken
from ottla.model.errors import ErrorCode
from ottla.security.principal import ANONYMOUS, USER, Principal
from ottla.server.api.context import Context
from ottla.server.quorum.active_controller import Decided
from ottla.wire.message import Response
from ottla.wire.messages.security.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

ResponseT = TypeVar("ResponseT", bound=Response)

# In place of a time in an answer that a broker gives without asking the controller.
NO_TIMESTAMP = -1
# The errors for clients who may not ask for tokens, are neither owner nor renewer of one, or do not know its secret.
NOT_THEIRS = (
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
)


def may_ask_for_tokens(context: Context) -> bool:
    """Return whether the client has proven who it is by itself, not with a token.

    Kafka asks for the security protocol, too, which comes to the same: a client of a PLAINTEXT listener, or of an SSL
    listener without a certificate, is ANONYMOUS. The principal is known on the active controller as well, to which the
    requests are forwarded.
    """
    return context.principal != ANONYMOUS and not context.principal.token_authenticated


def changed(
    command: ExpireDelegationToken | RenewDelegationToken,
    context: Context,
    respond: Callable[[ErrorCode, int], ResponseT],
) -> Decided[ResponseT]:
    """Change when a token expires; `respond` takes the error code and the new time."""
    if not may_ask_for_tokens(context):
        return respond(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIMESTAMP)
    return context.member.controller.ask(command, partial(respond, ErrorCode.NONE))


def owner_in(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return whose token is asked for: that of whoever asks, unless the request names somebody."""
    if not request.owner_principal_name:
        return requester
    return Principal(request.owner_principal_type or USER, request.owner_principal_name)


def not_created(
    code: ErrorCode, owner: Principal, requester: Principal, *, timestamp: int = NO_TIMESTAMP
) -> CreateDelegationTokenResponse:
    """Return a refusal; as in Kafka, the active controller's have other times than the brokers'."""
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=timestamp,
        expiry_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
        token_id="",
        hmac=b"",
    )
