"""Delegation tokens: with one, a program logs in as the token's owner without knowing the owner's password (KIP-48).

Only a client that has proven who it is by itself can ask for tokens: not one of a PLAINTEXT listener, and not one that
logged in with a token.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.client.checks import checked_number
from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.model.limits import INT64_MAX
from ottla.security.delegation_tokens import token_password
from ottla.security.principal import Principal
from ottla.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest

_AS_LONG_AS_ALLOWED = -1
_AT_ONCE = -1


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token; times are milliseconds since 1970. A program logs in with `token_id` as its SCRAM user name and
    `password`. `requester` is None if the broker is too old to tell.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal | None
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int  # the token cannot be renewed beyond this time

    @property
    def password(self) -> str:
        return token_password(self.hmac)


class TokenAdmin:
    """Operations on delegation tokens."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(
        self,
        *,
        owner: Principal | None = None,
        renewers: Iterable[Principal] = (),
        max_lifetime_ms: int | None = None,
    ) -> DelegationToken:
        """Create a token for this client's own principal, or for another owner if this client may do so. Without
        `max_lifetime_ms` it lives as long as the brokers' settings allow.
        """
        renewers = tuple(renewers)
        if max_lifetime_ms is not None:  # brokers read 0 and less as: as long as the settings allow
            checked_number(max_lifetime_ms, "max_lifetime_ms", at_least=1, at_most=INT64_MAX)
        kind = CreateDelegationTokenRequest.CreatableRenewers
        request = CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else owner.type,
            owner_principal_name=None if owner is None else owner.name,
            renewers=[kind(principal_type=each.type, principal_name=each.name) for each in renewers],
            max_lifetime_ms=_AS_LONG_AS_ALLOWED if max_lifetime_ms is None else max_lifetime_ms,
        )
        answer = await self._cluster.call(request, repeatable=False)
        check(answer.error_code)
        return DelegationToken(
            answer.token_id,
            bytes(answer.hmac),
            Principal(answer.principal_type, answer.principal_name),
            _requester(answer.token_requester_principal_type, answer.token_requester_principal_name),
            renewers,
            answer.issue_timestamp_ms,
            answer.expiry_timestamp_ms,
            answer.max_timestamp_ms,
        )

    async def all(self, owners: Iterable[Principal] | None = None) -> list[DelegationToken]:
        """Return the tokens that this client may see, by expiry: all, or those of these owners or renewers."""
        kind = DescribeDelegationTokenRequest.Owner
        wanted = None
        if owners is not None:
            wanted = [kind(principal_type=each.type, principal_name=each.name) for each in owners]
        request = DescribeDelegationTokenRequest(owners=wanted)
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code)
        found = [
            DelegationToken(
                each.token_id,
                bytes(each.hmac),
                Principal(each.principal_type, each.principal_name),
                _requester(each.token_requester_principal_type, each.token_requester_principal_name),
                tuple(Principal(renewer.principal_type, renewer.principal_name) for renewer in each.renewers),
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
            )
            for each in answer.tokens
        ]
        return sorted(found, key=lambda token: (token.expires_ms, token.token_id))

    async def renew(self, hmac: bytes, period_ms: int | None = None) -> int:
        """Let a token expire this long from now (None: as late as allowed), and return that time."""
        period_ms = _AS_LONG_AS_ALLOWED if period_ms is None else period_ms
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        answer = await self._cluster.call(request, repeatable=False)
        check(answer.error_code)
        return answer.expiry_timestamp_ms

    async def expire(self, hmac: bytes, period_ms: int | None = None) -> int:
        """Let a token expire this long from now (None: remove it at once), and return that time."""
        period_ms = _AT_ONCE if period_ms is None else period_ms
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = await self._cluster.call(request, repeatable=False)
        check(answer.error_code)
        return answer.expiry_timestamp_ms


def _requester(kind: str, name: str) -> Principal | None:
    return Principal(kind, name) if name else None
