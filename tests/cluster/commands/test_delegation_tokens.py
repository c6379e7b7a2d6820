"""The commands of delegation tokens: Kafka's rules, in an hour of the cluster's life."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from tests.cluster.bench import EPOCH_MS, Cluster

from ottla.cluster import token_index
from ottla.cluster.commands.delegation_tokens import (
    CreateDelegationToken,
    ExpireDelegationToken,
    IssuedToken,
    RenewDelegationToken,
)
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState
from ottla.machine.stepped import finished
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import (
    TOKEN_RENEWERS_CHARACTERS_MAX,
    TOKEN_RENEWERS_MAX,
    TOKENS_PER_OWNER_MAX,
    TOKENS_PER_SLICE,
    TOKENS_REMOVED_PER_TURN,
)
from ottla.security.delegation_tokens import token_hmac
from ottla.security.principal import Principal

ALICE, BOB, CAROL = map(Principal.user, ("alice", "bob", "carol"))
KEY = "a secret of all nodes"
HOUR_MS = 3_600_000
SETTINGS = {
    "delegation.token.secret.key": KEY,
    "delegation.token.max.lifetime.ms": str(10 * HOUR_MS),
    "delegation.token.expiry.time.ms": str(2 * HOUR_MS),
    "delegation.token.expiry.check.interval.ms": str(HOUR_MS),
}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(properties=SETTINGS)


def create(cluster: Cluster, owner: Principal = ALICE, *renewers: Principal, lifetime_ms: int = -1) -> IssuedToken:
    issued: IssuedToken = cluster.submit(CreateDelegationToken(owner, owner, renewers, lifetime_ms))
    return issued


def today(cluster: Cluster) -> int:
    return EPOCH_MS + cluster.now_ms


def refusal(cluster: Cluster, command: Any) -> ErrorCode:
    before = len(cluster.journal)
    with pytest.raises(ApiError) as refused:
        cluster.submit(command)
    assert len(cluster.journal) == before
    return refused.value.code


def test_a_token_is_an_id_and_its_hmac(cluster: Cluster) -> None:
    issued = cluster.submit(CreateDelegationToken(BOB, ALICE, (CAROL,), 0))
    record = cluster.state.tokens[issued.record.token_id]
    assert (record.owner, record.requester, record.renewers) == ("User:bob", "User:alice", ["User:carol"])
    assert record.issue_timestamp == today(cluster)
    assert record.max_timestamp == today(cluster) + 10 * HOUR_MS
    assert record.expiration_timestamp == today(cluster) + 2 * HOUR_MS
    assert issued.hmac == hmac.new(KEY.encode(), record.token_id.encode(), hashlib.sha512).digest()
    assert issued.hmac.hex() not in repr(issued)


def test_a_short_life(cluster: Cluster) -> None:
    record = create(cluster, lifetime_ms=HOUR_MS).record
    assert record.max_timestamp == record.expiration_timestamp == today(cluster) + HOUR_MS
    longest = create(cluster, lifetime_ms=100 * HOUR_MS).record
    assert longest.max_timestamp == today(cluster) + 10 * HOUR_MS


def test_renewing_moves_the_expiry_up_to_the_end_of_life(cluster: Cluster) -> None:
    issued = create(cluster, ALICE, BOB)
    cluster.pass_time(HOUR_MS)
    assert cluster.submit(RenewDelegationToken(BOB, issued.hmac, 60_000)) == today(cluster) + 60_000
    assert cluster.submit(RenewDelegationToken(ALICE, issued.hmac, -1)) == today(cluster) + 2 * HOUR_MS
    assert cluster.submit(RenewDelegationToken(ALICE, issued.hmac, 9 * HOUR_MS)) == today(cluster) + 2 * HOUR_MS
    for _ in range(8):
        cluster.pass_time(HOUR_MS)
        cluster.submit(RenewDelegationToken(ALICE, issued.hmac, -1))
    stored = cluster.state.tokens[issued.record.token_id]
    assert stored.expiration_timestamp == stored.max_timestamp == issued.record.max_timestamp
    assert stored.renewers == ["User:bob"]
    assert stored.issue_timestamp == issued.record.issue_timestamp


def test_expiring_sooner_and_at_once(cluster: Cluster) -> None:
    issued, other = create(cluster, ALICE, BOB), create(cluster, ALICE)
    assert cluster.submit(ExpireDelegationToken(BOB, issued.hmac, 1_000)) == today(cluster) + 1_000
    # as in Kafka, this can also prolong a token
    assert cluster.submit(ExpireDelegationToken(ALICE, issued.hmac, 99 * HOUR_MS)) == issued.record.max_timestamp
    assert cluster.submit(ExpireDelegationToken(ALICE, issued.hmac, -1)) == today(cluster)
    assert list(cluster.state.tokens) == [other.record.token_id]
    assert refusal(cluster, RenewDelegationToken(ALICE, issued.hmac, -1)) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("command", [RenewDelegationToken, ExpireDelegationToken])
def test_refusals(cluster: Cluster, command: Any) -> None:
    issued = create(cluster, ALICE, BOB)
    assert refusal(cluster, command(CAROL, issued.hmac, 1)) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert refusal(cluster, command(ALICE, issued.hmac[:-1], 1)) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert refusal(cluster, command(ALICE, b"", 1)) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    cluster.now_ms += 2 * HOUR_MS + 1
    assert refusal(cluster, command(ALICE, issued.hmac, 1)) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    # Kafka asks first who it is when it expires a token, and last when it renews one
    stranger = refusal(cluster, command(CAROL, issued.hmac, 1))
    renews = command is RenewDelegationToken
    assert stranger == (ErrorCode.DELEGATION_TOKEN_EXPIRED if renews else ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


COMMANDS = (
    CreateDelegationToken(ALICE, ALICE, (), 0),
    RenewDelegationToken(ALICE, b"x", 0),
    ExpireDelegationToken(ALICE, b"x", 0),
)


@pytest.mark.parametrize("key", [None, ""])
@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_key_there_are_no_tokens(command: Any, key: str | None) -> None:
    cluster = Cluster(properties={} if key is None else {"delegation.token.secret.key": key})
    assert refusal(cluster, command) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert "expired delegation tokens" not in cluster.timers


@pytest.mark.parametrize("command", COMMANDS)
def test_an_old_metadata_version(cluster: Cluster, command: Any) -> None:
    cluster.state.features["metadata.version"] = 13
    assert refusal(cluster, command) == ErrorCode.UNSUPPORTED_VERSION


def test_expired_tokens_are_removed_periodically(cluster: Cluster) -> None:
    first = create(cluster)
    cluster.pass_time(HOUR_MS)
    second = create(cluster)
    cluster.pass_time(HOUR_MS)
    assert len(cluster.state.tokens) == 2  # the first expires in this very millisecond
    cluster.pass_time(HOUR_MS)
    assert first.record.token_id not in cluster.state.tokens
    assert second.record.token_id in cluster.state.tokens
    cluster.pass_time(2 * HOUR_MS)
    assert not cluster.state.tokens


def test_very_many_expired_tokens_are_removed_in_turns(cluster: Cluster) -> None:
    for number in range(2 * TOKENS_REMOVED_PER_TURN + 1):
        create(cluster, (ALICE, BOB, CAROL)[number % 3], lifetime_ms=1_000)
    command = cluster.timers["expired delegation tokens"].command
    cluster.now_ms += 2_000
    sizes = []
    while cluster.state.tokens:
        cluster.submit(command)
        sizes.append(len(cluster.state.tokens))
    assert sizes == [TOKENS_REMOVED_PER_TURN + 1, 1, 0]
    assert cluster.timers["expired delegation tokens"].deadline_ms == cluster.now_ms + HOUR_MS


def test_a_token_among_many_is_found_in_steps(cluster: Cluster) -> None:
    last = [create(cluster, (ALICE, BOB)[number % 2]) for number in range(2 * TOKENS_PER_SLICE + 1)][-1]
    steps = cluster.machine.deciding(RenewDelegationToken(ALICE, last.hmac, -1), cluster.now_ms)
    assert sum(1 for _ in steps) == 2


def test_a_wrong_hmac_costs_one_look_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among 5,000 tokens; each of them is signed once, whoever asks how often."""
    signed: list[str] = []

    def counted(secret_key: str, token_id: str) -> bytes:
        signed.append(token_id)
        return token_hmac(secret_key, token_id)

    monkeypatch.setattr(token_index, "token_hmac", counted)
    owners = [Principal.user(f"user-{number}") for number in range(5)]
    tokens = [create(cluster, owners[number % 5]) for number in range(5_000)]
    for command in (RenewDelegationToken, ExpireDelegationToken):
        for _ in range(10):
            assert refusal(cluster, command(BOB, b"wrong" * 10, 1)) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert len(signed) == len(set(signed)) == 5_000
    cluster.submit(RenewDelegationToken(owners[0], tokens[0].hmac, -1))
    cluster.submit(ExpireDelegationToken(owners[1], tokens[1].hmac, -1))
    late = create(cluster)
    cluster.submit(RenewDelegationToken(ALICE, late.hmac, -1))
    assert signed[5_000:] == [late.record.token_id], "a renewed token is not signed again"


def test_a_copy_finds_tokens_by_itself(cluster: Cluster) -> None:
    """A new active controller decides on a copy of the state, a new node on a journal that it has read."""
    first, second = create(cluster), create(cluster)
    cluster.submit(RenewDelegationToken(ALICE, first.hmac, -1))
    copy, replayed = cluster.state.copy(), ClusterState()
    replayed.apply_all(entry.record for entry in cluster.journal)
    cluster.submit(ExpireDelegationToken(ALICE, first.hmac, -1))
    cluster.submit(ExpireDelegationToken(ALICE, second.hmac, -1))
    for state in (copy, replayed):
        for each in (first, second):
            assert finished(state.token_index.find(each.hmac, KEY)) == each.record.token_id
        assert state.token_index.count("User:alice") == 2
    assert cluster.state.token_index.count("User:alice") == 0
    assert finished(cluster.state.token_index.find(first.hmac, KEY)) is None


def test_another_key_signs_all_tokens_again(cluster: Cluster) -> None:
    issued = create(cluster)
    index, token_id = cluster.state.token_index, issued.record.token_id
    assert finished(index.find(issued.hmac, KEY)) == token_id
    assert finished(index.find(token_hmac("another", token_id), "another")) == token_id
    assert finished(index.find(issued.hmac, "another")) is None
    index.remove(token_id)
    assert finished(index.find(token_hmac("another", token_id), "another")) is None


def test_an_owner_has_a_bounded_number_of_tokens(cluster: Cluster) -> None:
    tokens = [create(cluster) for _ in range(TOKENS_PER_OWNER_MAX)]
    cluster.submit(RenewDelegationToken(ALICE, tokens[0].hmac, -1))
    one_more = CreateDelegationToken(ALICE, BOB, (), 0)
    assert refusal(cluster, one_more) == ErrorCode.POLICY_VIOLATION
    create(cluster, BOB)
    cluster.submit(ExpireDelegationToken(ALICE, tokens[0].hmac, -1))
    cluster.submit(one_more)
    assert refusal(cluster, one_more) == ErrorCode.POLICY_VIOLATION


def test_the_renewers_of_a_token_are_bounded(cluster: Cluster) -> None:
    create(cluster, ALICE, *(Principal.user(f"renewer-{number}") for number in range(TOKEN_RENEWERS_MAX)))
    create(cluster, ALICE, Principal.user("x" * (TOKEN_RENEWERS_CHARACTERS_MAX - len("User:"))))
    for renewers in ((BOB,) * (TOKEN_RENEWERS_MAX + 1), (Principal.user("x" * TOKEN_RENEWERS_CHARACTERS_MAX),)):
        assert refusal(cluster, CreateDelegationToken(ALICE, ALICE, renewers, 0)) == ErrorCode.POLICY_VIOLATION


def test_a_snapshot_keeps_tokens(cluster: Cluster) -> None:
    create(cluster, ALICE, BOB)
    again = ClusterState()
    again.apply_all(entry.record for entry in snapshot(cluster.state))
    assert again.tokens == cluster.state.tokens
