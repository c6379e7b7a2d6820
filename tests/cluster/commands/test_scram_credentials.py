"""AlterScramCredentials: Kafka's rules and texts, and what the journal stores of a password."""

from __future__ import annotations

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.alter_scram_credentials import AlterScramCredentials, ScramDeletion, ScramUpsertion
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.sasl.scram.credentials import ScramMechanism, credential_of, salted_password

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
TWICE = ("DUPLICATE_RESOURCE", "A user credential cannot be altered twice in the same request")


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4_096, **more: bytes) -> ScramUpsertion:
    return ScramUpsertion(
        user, mechanism, iterations, more.get("salt", b"salt"), more.get("salted_password", b"salted")
    )


def alter(cluster: Cluster, *changes: ScramDeletion | ScramUpsertion) -> dict[str, tuple[str, str | None] | None]:
    deletions = tuple(change for change in changes if isinstance(change, ScramDeletion))
    upsertions = tuple(change for change in changes if isinstance(change, ScramUpsertion))
    outcomes = cluster.submit(AlterScramCredentials(deletions, upsertions))
    assert len({outcome.user for outcome in outcomes}) == len(outcomes)
    return {outcome.user: verdict(outcome.error) for outcome in outcomes}


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_what_is_stored_is_the_credential_of_the_password(mechanism: ScramMechanism) -> None:
    cluster = Cluster()
    salted = salted_password("secret", b"some salt", 5_000, mechanism)
    wanted = ScramUpsertion("alice", mechanism, 5_000, b"some salt", salted)
    assert alter(cluster, wanted) == {"alice": None}
    stored = cluster.state.scram["alice", mechanism]
    expected = credential_of("secret", b"some salt", 5_000, mechanism)
    assert (stored.salt, stored.stored_key, stored.server_key, stored.iterations) == expected


def test_a_user_has_one_credential_per_mechanism() -> None:
    cluster = Cluster()
    alter(cluster, upsertion("alice"))
    alter(cluster, upsertion("alice", SHA_512))
    alter(cluster, upsertion("alice", iterations=8_192))
    assert {key: record.iterations for key, record in cluster.state.scram.items()} == {
        ("alice", SHA_256): 8_192,
        ("alice", SHA_512): 4_096,
    }
    assert alter(cluster, ScramDeletion("alice", SHA_256)) == {"alice": None}
    assert list(cluster.state.scram) == [("alice", SHA_512)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (upsertion("a", iterations=4_095), ("UNACCEPTABLE_CREDENTIAL", "Too few iterations")),
        (upsertion("a", iterations=16_385), ("UNACCEPTABLE_CREDENTIAL", "Too many iterations")),
        (upsertion(""), ("UNACCEPTABLE_CREDENTIAL", "Username must not be empty")),
        (upsertion("a", 0), ("UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism")),
        (upsertion("a", 3), ("UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism")),
        (upsertion("a", salt=bytes(1_025)), ("UNACCEPTABLE_CREDENTIAL", "The salt is longer than 1024 bytes")),
        (
            upsertion("a", salted_password=b""),
            ("UNACCEPTABLE_CREDENTIAL", "The salted password must not be empty"),
        ),
        (ScramDeletion("", SHA_256), ("UNACCEPTABLE_CREDENTIAL", "Username must not be empty")),
        (ScramDeletion("a", 9), ("UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism")),
        (
            ScramDeletion("a", SHA_256),
            ("RESOURCE_NOT_FOUND", "Attempt to delete a user credential that does not exist"),
        ),
    ],
)
def test_refusals(change: ScramDeletion | ScramUpsertion, problem: tuple[str, str]) -> None:
    cluster = Cluster()
    before = len(cluster.journal)
    assert alter(cluster, change, upsertion("bob")) == {change.user: problem, "bob": None}
    assert list(cluster.state.scram) == [("bob", SHA_256)]
    assert len(cluster.journal) == before + 2, "the secret of unknown users, and bob"


def test_one_request_alters_a_user_once() -> None:
    cluster = Cluster()
    alter(cluster, upsertion("alice"), upsertion("bob"))
    before = len(cluster.journal)
    changes = (ScramDeletion("alice", SHA_256), upsertion("alice", SHA_512), upsertion("carol"), upsertion("carol"))
    assert alter(cluster, *changes) == {"alice": TWICE, "carol": TWICE}
    assert alter(cluster, ScramDeletion("bob", SHA_256), ScramDeletion("bob", SHA_512)) == {"bob": TWICE}
    # the first error of a user stays
    first = ("UNACCEPTABLE_CREDENTIAL", "Too few iterations")
    assert alter(cluster, upsertion("dora", iterations=1), upsertion("dora"), upsertion("dora")) == {"dora": first}
    assert len(cluster.journal) == before


def test_an_old_metadata_version_has_no_place_for_credentials() -> None:
    cluster = Cluster()
    cluster.state.features["metadata.version"] = 10
    problem = ("UNSUPPORTED_VERSION", "The current metadata.version does not support SCRAM")
    assert alter(cluster, upsertion("alice"), ScramDeletion("bob", SHA_256)) == {"alice": problem, "bob": problem}


def test_too_many_at_once() -> None:
    many = tuple(ScramDeletion(str(number), SHA_256) for number in range(limits.CREDENTIALS_PER_REQUEST_MAX + 1))
    with pytest.raises(ApiError) as refused:
        Cluster().submit(AlterScramCredentials(many, ()))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


def test_a_snapshot_keeps_credentials() -> None:
    cluster = Cluster()
    alter(cluster, upsertion("alice"), upsertion("bob", SHA_512))
    again = ClusterState()
    again.apply_all(entry.record for entry in snapshot(cluster.state))
    assert again.scram == cluster.state.scram


def test_secrets_are_not_printed() -> None:
    command = AlterScramCredentials((), (upsertion("alice", salted_password=b"very secret"),))
    assert "very secret" not in repr(command)
    assert "alice" in repr(command)
