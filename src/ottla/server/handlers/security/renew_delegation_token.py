"""RenewDelegationToken (key 39): prolong a delegation token."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.delegation_tokens import RenewDelegationToken
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs
from ottla.server.api.security.token_requests import NOT_THEIRS, changed
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.security.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def _response(code: ErrorCode, expiry_ms: int) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)


def _refuse(_: RenewDelegationTokenRequest, error: ApiError) -> RenewDelegationTokenResponse:
    return _response(error.code, 0)


def _named(request: RenewDelegationTokenRequest) -> Iterator[str]:
    """A request has the secret half of the token, which is not written down, and not its id."""
    yield f"by {request.renew_period_ms} ms"


@handles(
    RenewDelegationTokenRequest,
    needs=Needs(changes=_named, refuses=NOT_THEIRS),
    on="both",
    forwarded=True,
    few=True,
    refuse=_refuse,
)
def renew_delegation_token(
    request: RenewDelegationTokenRequest, context: Context
) -> Decided[RenewDelegationTokenResponse]:
    command = RenewDelegationToken(context.principal, bytes(request.hmac), request.renew_period_ms)
    return changed(command, context, _response)
