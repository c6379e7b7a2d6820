"""Delegation tokens: create, renew and expire them, and remove expired ones periodically (KIP-48, KIP-900).

The journal has no secret: who knows the id of a token and not the key in the nodes' settings cannot use the token.
Clients name a token by its HMAC, by which the state's index finds it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ottla.cluster import features
from ottla.cluster.decision import Deciding
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result, Timer
from ottla.machine.stepped import Steps
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import random_uuid, uuid_text
from ottla.model.limits import (
    INT64_MAX,
    TOKEN_RENEWERS_CHARACTERS_MAX,
    TOKEN_RENEWERS_MAX,
    TOKENS_PER_OWNER_MAX,
    TOKENS_REMOVED_PER_TURN,
)
from ottla.model.settings.security import (
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS,
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_SECRET_KEY,
)
from ottla.security.delegation_tokens import token_hmac
from ottla.security.principal import Principal
from ottla.wire.journal import cluster_metadata as journal


class IssuedToken(NamedTuple):
    """A new token with its secret half."""

    record: journal.DelegationTokenRecord
    hmac: bytes

    def __repr__(self) -> str:
        return f"IssuedToken({self.record.token_id})"


@dataclass(frozen=True, slots=True)
class CreateDelegationToken:
    """Replies with an IssuedToken. A lifetime of 0 or less means the longest one that the settings allow."""

    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    max_lifetime_ms: int

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, IssuedToken]:
        secret_key = _secret_key_of(view)
        renewers = [str(renewer) for renewer in self.renewers]
        _check_room(view, str(self.owner), renewers)
        now_ms = view.time_of_day_ms()
        lifetime_ms = _limited(self.max_lifetime_ms, view.defaults[DELEGATION_TOKEN_MAX_LIFETIME_MS])
        max_timestamp = _later(now_ms, lifetime_ms)
        record = journal.DelegationTokenRecord(
            owner=str(self.owner),
            requester=str(self.requester),
            renewers=renewers,
            issue_timestamp=now_ms,
            max_timestamp=max_timestamp,
            expiration_timestamp=min(max_timestamp, _later(now_ms, view.defaults[DELEGATION_TOKEN_EXPIRY_TIME_MS])),
            token_id=uuid_text(random_uuid(view.rng)),
        )
        return Result([MetadataEntry(record)], IssuedToken(record, token_hmac(secret_key, record.token_id)))


@dataclass(frozen=True, slots=True)
class RenewDelegationToken:
    """Replies with the time at which the token expires from now on. A period of 0 or less means the longest one."""

    requester: Principal
    hmac: bytes
    period_ms: int

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[int]:
        token = yield from _find(view, self.hmac)
        now_ms = view.time_of_day_ms()
        if is_expired(token, now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_rights(token, self.requester)
        period_ms = _limited(self.period_ms, view.defaults[DELEGATION_TOKEN_EXPIRY_TIME_MS])
        return _expiring(token, _later(now_ms, period_ms))


@dataclass(frozen=True, slots=True)
class ExpireDelegationToken:
    """Replies with the time at which the token expires from now on. A negative period removes the token at once."""

    requester: Principal
    hmac: bytes
    period_ms: int

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[int]:
        token = yield from _find(view, self.hmac)
        now_ms = view.time_of_day_ms()
        _check_rights(token, self.requester)
        if self.period_ms < 0:
            return Result([_removal(token)], now_ms)
        if is_expired(token, now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return _expiring(token, _later(now_ms, self.period_ms))


class RemoveExpiredTokens(NamedTuple):
    """Periodic: remove tokens that have expired."""

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, None]:
        today_ms = view.time_of_day_ms()
        expired = (token for token in view.state.tokens.values() if is_expired(token, today_ms))
        records = [_removal(token) for token in islice(expired, TOKENS_REMOVED_PER_TURN)]
        more = len(records) == TOKENS_REMOVED_PER_TURN
        interval_ms = 0 if more else view.defaults[DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS]
        return Result(records, timers=[_check_at(now_ms + interval_ms)])


def expiry_checks(view: MetadataView, now_ms: int) -> Iterator[Timer]:
    """Yield the timer of an active controller that removes expired tokens, if there can be tokens."""
    if secret_key_in(view.defaults) is not None:
        yield _check_at(now_ms + view.defaults[DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS])


def secret_key_in(settings: Config) -> str | None:
    """Return the key that signs tokens; None if there are no tokens."""
    return settings[DELEGATION_TOKEN_SECRET_KEY] or None


def is_expired(token: journal.DelegationTokenRecord, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def _check_at(deadline_ms: int) -> Timer:
    return Timer("expired delegation tokens", deadline_ms, RemoveExpiredTokens())


def _secret_key_of(view: MetadataView) -> str:
    secret_key = secret_key_in(view.defaults)
    if secret_key is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if view.state.metadata_version < features.DELEGATION_TOKENS:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    return secret_key


def _check_room(view: MetadataView, owner: str, renewers: Collection[str]) -> None:
    """Raise POLICY_VIOLATION if the token would be too large, or one too many: every node keeps all tokens."""
    if len(renewers) > TOKEN_RENEWERS_MAX or sum(map(len, renewers)) > TOKEN_RENEWERS_CHARACTERS_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"A token may have {TOKEN_RENEWERS_MAX} renewers, with {TOKEN_RENEWERS_CHARACTERS_MAX} characters at most.",
        )
    if view.state.token_index.count(owner) >= TOKENS_PER_OWNER_MAX:
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"The owner has {TOKENS_PER_OWNER_MAX} tokens, which is the most.")


def _find(view: MetadataView, secret: bytes) -> Steps[journal.DelegationTokenRecord]:
    token_id = yield from view.state.token_index.find(secret, _secret_key_of(view))
    if token_id is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return view.state.tokens[token_id]


def _check_rights(token: journal.DelegationTokenRecord, principal: Principal) -> None:
    if str(principal) not in (token.owner, *token.renewers):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _expiring(token: journal.DelegationTokenRecord, at_ms: int) -> Result[MetadataEntry, int]:
    expiry_ms = min(token.max_timestamp, at_ms)
    record = journal.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expiry_ms,
        token_id=token.token_id,
    )
    return Result([MetadataEntry(record)], expiry_ms)


def _removal(token: journal.DelegationTokenRecord) -> MetadataEntry:
    return MetadataEntry(journal.RemoveDelegationTokenRecord(token_id=token.token_id))


def _limited(asked_ms: int, longest_ms: int) -> int:
    return min(asked_ms, longest_ms) if asked_ms > 0 else longest_ms


def _later(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, INT64_MAX)
