"""The guard of CreateDelegationToken: CREATE_TOKENS on another user, to have a token that acts as that user."""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.refusals import Handler
from ottla.server.api.security.token_requests import may_ask_for_tokens, not_created, owner_in
from ottla.server.loop.later import Answer
from ottla.wire.messages.security.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


def guard(handler: Handler) -> Handler:
    def create_delegation_token(
        request: CreateDelegationTokenRequest, context: Context
    ) -> Answer[CreateDelegationTokenResponse]:
        if not request.owner_principal_name or not may_ask_for_tokens(context):
            return handler(request, context)  # which refuses whoever may not ask
        requester = context.principal
        owner = owner_in(request, requester)
        if (owner.type, owner.name) == (requester.type, requester.name) or decisions_of(context).allows(
            AclOperation.CREATE_TOKENS, AclResourceType.USER, str(owner)
        ):
            return handler(request, context)
        return not_created(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, owner, requester)

    return create_delegation_token
