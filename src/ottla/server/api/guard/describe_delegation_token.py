"""The guard of DescribeDelegationToken: who owns or may renew a token sees it, since the answer has its secret.

Others need DESCRIBE on the token, or DESCRIBE_TOKENS on its owner.
"""

from __future__ import annotations

from ottla.model import limits
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.security.principal import Principal
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import Steps, kept, reviewed
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.messages.security.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

_DECISIONS_PER_TOKEN = 2
_Token = DescribeDelegationTokenResponse.DescribedDelegationToken


def guard(handler: Handler) -> Handler:
    def describe_delegation_token(
        request: DescribeDelegationTokenRequest, context: Context
    ) -> Answer[DescribeDelegationTokenResponse]:
        decisions, principal = decisions_of(context), context.principal

        def review(response: DescribeDelegationTokenResponse) -> Steps[DescribeDelegationTokenResponse]:
            response.tokens = yield from kept(
                response.tokens,
                lambda token: _is_seen(token, principal, decisions),
                Tally(limits.DECISIONS_PER_SLICE),
                _DECISIONS_PER_TOKEN,
            )
            return response

        return reviewed(handler(request, context), review, context.runtime.slices)

    return describe_delegation_token


def _is_seen(token: _Token, principal: Principal, decisions: Decisions) -> bool:
    owner = Principal(token.principal_type, token.principal_name)
    own = [(owner.type, owner.name), *((each.principal_type, each.principal_name) for each in token.renewers)]
    return (
        (principal.type, principal.name) in own
        or decisions.allows_now(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id)
        or decisions.allows_now(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, str(owner))
    )
