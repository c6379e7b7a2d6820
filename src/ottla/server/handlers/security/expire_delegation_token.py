"""ExpireDelegationToken (key 40): let a delegation token expire sooner, or now."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.delegation_tokens import ExpireDelegationToken
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs
from ottla.server.api.security.token_requests import NOT_THEIRS, changed
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.security.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def _response(code: ErrorCode, expiry_ms: int) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)


def _refuse(_: ExpireDelegationTokenRequest, error: ApiError) -> ExpireDelegationTokenResponse:
    return _response(error.code, 0)


def _named(request: ExpireDelegationTokenRequest) -> Iterator[str]:
    """A request has the secret half of the token, which is not written down, and not its id."""
    yield "now" if request.expiry_time_period_ms < 0 else f"in {request.expiry_time_period_ms} ms"


@handles(
    ExpireDelegationTokenRequest,
    needs=Needs(changes=_named, refuses=NOT_THEIRS),
    on="both",
    forwarded=True,
    few=True,
    refuse=_refuse,
)
def expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: Context
) -> Decided[ExpireDelegationTokenResponse]:
    command = ExpireDelegationToken(context.principal, bytes(request.hmac), request.expiry_time_period_ms)
    return changed(command, context, _response)
