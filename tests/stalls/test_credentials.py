"""Very many users, quotas and delegation tokens: nobody waits while they are altered, listed or searched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.talk import eventually
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of

from ottla.model.errors import ErrorCode
from ottla.model.limits import CREDENTIALS_PER_REQUEST_MAX
from ottla.wire.journal.cluster_metadata import DelegationTokenRecord
from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.messages.security.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.security.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest

MANY = 40_000
USERS = CREDENTIALS_PER_REQUEST_MAX
_Alter = AlterUserScramCredentialsRequest


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    settings = {"delegation.token.secret.key": "key"}
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as node:
        yield node


def asked(node: MeasuredNode, request: Any, version: int) -> Any:
    with node.connect() as connection:
        return connection.call(request, version)


def check(node: MeasuredNode, request: Any, version: int, count: int, name: str) -> None:
    """Ask, expect so many answers without an error, and measure."""

    def ask() -> None:
        answers = getattr(asked(node, request, version), name)
        assert len(answers) == count
        assert not any(getattr(each, "error_code", 0) for each in answers)

    worst = best_of(lambda: node.cost(ask))
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_users(node: MeasuredNode) -> None:
    upsertions = [
        _Alter.ScramCredentialUpsertion(
            name=f"user-{number}", mechanism=2, iterations=4096, salt=b"salt", salted_password=b"salted"
        )
        for number in range(USERS)
    ]
    check(node, _Alter(deletions=[], upsertions=upsertions), 0, USERS, "results")
    check(node, DescribeUserScramCredentialsRequest(users=None), 0, USERS, "results")
    name = DescribeUserScramCredentialsRequest.UserName
    named = [name(name=f"user-{number}") for number in range(USERS)]
    check(node, DescribeUserScramCredentialsRequest(users=named), 0, USERS, "results")
    deletions = [_Alter.ScramCredentialDeletion(name=each.name, mechanism=2) for each in upsertions]
    answer = asked(node, _Alter(deletions=deletions, upsertions=[]), 0)
    assert {each.error_code for each in answer.results} == {0}


def test_quotas(node: MeasuredNode) -> None:
    kind = AlterClientQuotasRequest.EntryData
    rates = iter(range(1, 100))

    def alter() -> None:
        rate = next(rates)
        entries = [
            kind(
                entity=[kind.EntityData(entity_type="user", entity_name=f"user-{number}")],
                ops=[kind.OpData(key="producer_byte_rate", value=rate, remove=False)],
            )
            for number in range(MANY)
        ]
        answer = asked(node, AlterClientQuotasRequest(entries=entries, validate_only=False), 1)
        assert len(answer.entries) == MANY and {each.error_code for each in answer.entries} == {0}

    worst = best_of(lambda: node.cost(alter), times=2)
    assert worst.cpu_ms <= BUDGET_MS, worst
    check(node, DescribeClientQuotasRequest(components=[], strict=False), 1, MANY, "entries")
    snapshots = node.node.member.snapshots

    def write_snapshot() -> None:
        change = kind.OpData(key="producer_byte_rate", value=next(rates), remove=False)
        entity = kind.EntityData(entity_type="user", entity_name=None)
        asked(node, AlterClientQuotasRequest(entries=[kind(entity=[entity], ops=[change])], validate_only=False), 1)
        snapshots._interval_ms, snapshots._next_ms = 1, 0
        node.call(lambda: snapshots.upkeep(1))
        node.call(lambda: None)
        eventually(lambda: snapshots._writing is None, "it is written", 120)

    worst = best_of(lambda: node.cost(write_snapshot))
    assert node.node.member.quorum.snapshot_offset == node.node.metadata.end_offset
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_tokens(node: MeasuredNode, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("api.security.token_requests", "handlers.security.describe_delegation_token"):
        monkeypatch.setattr(f"ottla.server.{module}.may_ask_for_tokens", lambda context: True)
    tokens = {
        f"token-{number}": DelegationTokenRecord(
            owner="User:alice",
            requester="User:alice",
            renewers=[],
            issue_timestamp=0,
            max_timestamp=2**62,
            expiration_timestamp=2**62,
            token_id=f"token-{number}",
        )
        for number in range(MANY)
    }
    # One request creates one token, which would take a minute.
    for state in (node.node.metadata.state, node.node.member.controller.view.state):
        state.apply_all(tokens.values())
    check(node, DescribeDelegationTokenRequest(owners=None), 3, MANY, "tokens")
    for request in (
        RenewDelegationTokenRequest(hmac=b"unknown", renew_period_ms=1),
        ExpireDelegationTokenRequest(hmac=b"unknown", expiry_time_period_ms=1),
    ):

        def search(request: Any = request) -> None:
            assert asked(node, request, 2).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND

        worst = best_of(lambda: node.cost(search))
        assert worst.cpu_ms <= BUDGET_MS, worst
