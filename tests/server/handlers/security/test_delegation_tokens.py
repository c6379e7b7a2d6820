"""The handlers of delegation tokens, in every version, for clients that have proven who they are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.admin import Admin

from ottla.model.errors import ErrorCode
from ottla.model.limits import TOKEN_RENEWERS_MAX
from ottla.security.delegation_tokens import token_hmac
from ottla.security.principal import ANONYMOUS, Principal
from ottla.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest

ALICE, BOB, CAROL = map(Principal.user, ("alice", "bob", "carol"))
DAY_MS = 86_400_000


@pytest.fixture
def admin() -> Admin:
    admin = Admin(properties={"delegation.token.secret.key": "key"})
    admin.context.principal = ALICE
    return admin


def create(
    admin: Admin, *renewers: Principal, owner: Principal | None = None, life_ms: int = -1, version: int = 3
) -> Any:
    renewer = CreateDelegationTokenRequest.CreatableRenewers
    named = {} if owner is None else {"owner_principal_type": owner.type, "owner_principal_name": owner.name}
    wanted = [renewer(principal_type=each.type, principal_name=each.name) for each in renewers]
    return admin.ask(CreateDelegationTokenRequest(renewers=wanted, max_lifetime_ms=life_ms, **named), version)


def describe(admin: Admin, *owners: Principal, version: int = 3) -> Any:
    owner = DescribeDelegationTokenRequest.Owner
    wanted = [owner(principal_type=each.type, principal_name=each.name) for each in owners]
    return admin.ask(DescribeDelegationTokenRequest(owners=wanted or None), version)


def renew(admin: Admin, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    return admin.ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), version)


def expire(admin: Admin, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    return admin.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), version)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_create_and_describe(admin: Admin, version: int) -> None:
    made = create(admin, BOB, version=version)
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    assert made.hmac == token_hmac("key", made.token_id)
    assert made.issue_timestamp_ms == admin.now_ms
    assert made.expiry_timestamp_ms == admin.now_ms + DAY_MS
    assert made.max_timestamp_ms == admin.now_ms + 7 * DAY_MS
    assert made.token_requester_principal_name == ("alice" if version >= 3 else "")
    (told,) = describe(admin, version=version).tokens
    assert (told.principal_type, told.principal_name, told.token_id, told.hmac) == (
        "User",
        "alice",
        made.token_id,
        made.hmac,
    )
    assert [(each.principal_type, each.principal_name) for each in told.renewers] == [("User", "bob")]
    assert told.token_requester_principal_name == ("alice" if version >= 3 else "")
    assert (told.issue_timestamp, told.expiry_timestamp, told.max_timestamp) == (
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


def test_a_token_for_another(admin: Admin) -> None:
    made = create(admin, owner=BOB)
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "alice")
    assert renew(admin, made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    admin.context.principal = BOB
    assert renew(admin, made.hmac).error_code == 0


def test_describe_by_owner_requester_or_renewer(admin: Admin) -> None:
    of_alice, of_bob = create(admin, CAROL).token_id, create(admin, owner=BOB).token_id

    def ids(*owners: Principal) -> set[str]:
        return {each.token_id for each in describe(admin, *owners).tokens}

    assert ids() == ids(ALICE) == {of_alice, of_bob}  # alice requested both
    assert ids(CAROL) == {of_alice}
    assert ids(BOB) == {of_bob}
    assert ids(BOB, CAROL) == {of_alice, of_bob}
    assert ids(Principal("Group", "alice")) == set()
    assert admin.ask(DescribeDelegationTokenRequest(owners=[]), 3).tokens == []


@pytest.mark.parametrize("version", [1, 2])
def test_renew_and_expire(admin: Admin, version: int) -> None:
    made = create(admin, BOB)
    admin.context.principal = BOB
    renewed = renew(admin, made.hmac, 1_000, version)
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, admin.now_ms + 1_000)
    sooner = expire(admin, made.hmac, 10, version)
    assert (sooner.error_code, sooner.expiry_timestamp_ms) == (0, admin.now_ms + 10)
    gone = expire(admin, made.hmac, version=version)
    assert (gone.error_code, gone.expiry_timestamp_ms) == (0, admin.now_ms)
    assert describe(admin).tokens == []
    for answer in (renew(admin, made.hmac, 1, version), expire(admin, made.hmac, 1, version)):
        assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def answers(admin: Admin) -> list[Any]:
    return [create(admin), renew(admin, b"x"), expire(admin, b"x"), describe(admin)]


@pytest.mark.parametrize("principal", [ANONYMOUS, ALICE._replace(token_authenticated=True)])
def test_who_has_not_proven_himself_gets_no_tokens(admin: Admin, principal: Principal) -> None:
    admin.context.principal = principal
    assert {each.error_code for each in answers(admin)} == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    assert not admin.host.state.tokens


def test_without_a_key() -> None:
    admin = Admin()
    admin.context.principal = ALICE
    assert {each.error_code for each in answers(admin)} == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}


def test_a_token_with_too_many_renewers_is_refused_for_a_reason_in_the_log(
    admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        made = create(admin, *[BOB] * (TOKEN_RENEWERS_MAX + 1))
    assert (made.error_code, made.token_id, made.hmac) == (ErrorCode.POLICY_VIOLATION, "", b"")
    assert "User:alice asked for is not created" in caplog.text and "100 renewers" in caplog.text
    assert not admin.host.state.tokens


def test_only_users_renew(admin: Admin) -> None:
    made = create(admin, Principal("Group", "g"))
    assert (made.error_code, made.token_id, made.expiry_timestamp_ms) == (ErrorCode.INVALID_PRINCIPAL_TYPE, "", -1)
