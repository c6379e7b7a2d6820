"""DescribeDelegationToken (key 41): list delegation tokens by owner; who requested or may renew one counts as well.

v3 the requester of each token
"""

from __future__ import annotations

from collections.abc import Collection, Generator

from ottla.cluster.commands.delegation_tokens import secret_key_in
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.delegation_tokens import token_hmac
from ottla.security.principal import Principal
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, Right
from ottla.server.api.security.token_requests import may_ask_for_tokens
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.journal.cluster_metadata import DelegationTokenRecord
from ottla.wire.messages.security.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

_Token = DescribeDelegationTokenResponse.DescribedDelegationToken


@handles(
    DescribeDelegationTokenRequest,
    needs=Needs(
        guard="describe_delegation_token",
        asks=(
            Right(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, "token_id"),
            Right(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, "owner"),
        ),
    ),
    on="both",
    few=True,
)
def describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: Context
) -> Answer[DescribeDelegationTokenResponse]:
    if not may_ask_for_tokens(context):
        return _response(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])
    secret_key = secret_key_in(context.settings)
    if secret_key is None:
        return _response(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, [])
    owners = None
    if request.owners is not None:
        owners = {str(Principal(each.principal_type, each.principal_name)) for each in request.owners}
    return context.runtime.slices.answer(_describing(owners, secret_key, context.member.state))


def _describing(
    owners: Collection[str] | None, secret_key: str, state: ClusterState
) -> Generator[None, None, DescribeDelegationTokenResponse]:
    tokens: list[_Token] = []
    tally = Tally(limits.TOKENS_PER_SLICE)
    for record in tuple(state.tokens.values()):
        if owners is None or any(name in owners for name in (record.owner, record.requester, *record.renewers)):
            tokens.append(_described(record, secret_key))
        if tally.is_full(1 + len(record.renewers)):
            yield
    return _response(ErrorCode.NONE, tokens)


def _described(record: DelegationTokenRecord, secret_key: str) -> _Token:
    owner, requester = _principal(record.owner), _principal(record.requester)
    renewers = map(_principal, record.renewers)
    renewer = _Token.DescribedDelegationTokenRenewer
    return _Token(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=record.issue_timestamp,
        expiry_timestamp=record.expiration_timestamp,
        max_timestamp=record.max_timestamp,
        token_id=record.token_id,
        hmac=token_hmac(secret_key, record.token_id),
        renewers=[renewer(principal_type=each.type, principal_name=each.name) for each in renewers],
    )


def _principal(text: str) -> Principal:
    """Return the principal of a record, whatever its form: it may have been written by a real Kafka."""
    kind, _, name = text.partition(":")
    return Principal(kind, name)


def _response(code: ErrorCode, tokens: list[_Token]) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=code, tokens=tokens)
