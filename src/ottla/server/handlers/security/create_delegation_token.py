"""CreateDelegationToken (key 38): issue a delegation token.

v3 tokens for another owner, and the requester in the answer
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from ottla.cluster.commands.delegation_tokens import CreateDelegationToken, IssuedToken
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.delegation_tokens import is_user
from ottla.security.principal import ANONYMOUS, Principal
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, Right
from ottla.server.api.security.token_requests import may_ask_for_tokens, not_created, owner_in
from ottla.server.quorum.active_controller import Decided
from ottla.server.quorum.not_controller import NotController
from ottla.server.security.logins import printable
from ottla.wire.messages.security.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

log = logging.getLogger(__name__)

# Whoever is authenticated may have a token of their own.
_FOR_OTHERS = Right(AclOperation.CREATE_TOKENS, AclResourceType.USER, "owner")


def _refuse(_: CreateDelegationTokenRequest, error: ApiError) -> CreateDelegationTokenResponse:
    return not_created(error.code, ANONYMOUS, ANONYMOUS)


def _named(request: CreateDelegationTokenRequest) -> Iterator[str]:
    if request.owner_principal_name:
        yield f"owner {owner_in(request, ANONYMOUS)}"
    else:
        yield "owner who asks"
    yield from (f"renewer {each.principal_type}:{each.principal_name}" for each in request.renewers)


@handles(
    CreateDelegationTokenRequest,
    needs=Needs(
        guard="create_delegation_token",
        asks=(_FOR_OTHERS,),
        changes=_named,
        refuses=(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,),
    ),
    on="both",
    forwarded=True,
    few=True,
    refuse=_refuse,
)
def create_delegation_token(
    request: CreateDelegationTokenRequest, context: Context
) -> Decided[CreateDelegationTokenResponse]:
    requester = context.principal
    owner = owner_in(request, requester)
    renewers = tuple(Principal(each.principal_type, each.principal_name) for each in request.renewers)
    if not may_ask_for_tokens(context):
        return not_created(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, owner, requester)
    if not all(map(is_user, renewers)):
        return not_created(ErrorCode.INVALID_PRINCIPAL_TYPE, owner, requester)

    def decided(reply: IssuedToken | ApiError) -> CreateDelegationTokenResponse | ApiError:
        if isinstance(reply, NotController):
            return reply
        if isinstance(reply, ApiError):
            # The answer has no room for the reason.
            log.info("a delegation token that %s asked for is not created: %s", printable(str(requester)), reply)
            return not_created(reply.code, owner, requester, timestamp=0)
        return _issued(reply, owner, requester)

    command = CreateDelegationToken(owner, requester, renewers, request.max_lifetime_ms)
    return context.member.controller.submit(command).map(decided).soonest()


def _issued(token: IssuedToken, owner: Principal, requester: Principal) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.NONE,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=token.record.issue_timestamp,
        expiry_timestamp_ms=token.record.expiration_timestamp,
        max_timestamp_ms=token.record.max_timestamp,
        token_id=token.record.token_id,
        hmac=token.hmac,
    )
