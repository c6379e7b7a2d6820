"""AlterClientQuotas: Kafka's rules and texts."""

from __future__ import annotations

import math

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.alter_client_quotas import AlterClientQuotas, QuotaAlteration, QuotaOp
from ottla.cluster.entities import QuotaChanged
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState

ALICE = (("user", "alice"),)
ALICE_AT_APP = (("client-id", "app"), ("user", "alice"))
EVERY_USER = (("user", None),)
HOME = (("ip", "127.0.0.1"),)

Parts = tuple[tuple[str, str | None], ...]


def wanted(parts: Parts, **quotas: float | None) -> QuotaAlteration:
    return QuotaAlteration(parts, tuple(QuotaOp(key, value) for key, value in quotas.items()))


def alter(
    cluster: Cluster, *alterations: QuotaAlteration, dry: bool = False
) -> list[tuple[Parts, tuple[str, str | None] | None]]:
    outcomes = cluster.submit(AlterClientQuotas(alterations, dry))
    return [(outcome.entity, verdict(outcome.error)) for outcome in outcomes]


def test_set_change_and_remove() -> None:
    cluster = Cluster()
    both = tuple(reversed(ALICE_AT_APP))  # the order of the types does not matter
    assert alter(cluster, wanted(ALICE, producer_byte_rate=1_000, request_percentage=12.5), wanted(both)) == [
        (ALICE, None),
        (ALICE_AT_APP, None),
    ]
    alter(cluster, wanted(both, consumer_byte_rate=5), wanted(EVERY_USER, controller_mutation_rate=0.5))
    alter(cluster, wanted(HOME, connection_creation_rate=7), wanted((("ip", None),), connection_creation_rate=9))
    assert cluster.state.quotas == {
        ALICE: {"producer_byte_rate": 1_000, "request_percentage": 12.5},
        ALICE_AT_APP: {"consumer_byte_rate": 5},
        EVERY_USER: {"controller_mutation_rate": 0.5},
        HOME: {"connection_creation_rate": 7},
        (("ip", None),): {"connection_creation_rate": 9},
    }
    cluster.changes.clear()
    alter(cluster, wanted(ALICE, producer_byte_rate=2_000, request_percentage=None), wanted(HOME, no_such_key=None))
    alter(cluster, wanted(EVERY_USER, controller_mutation_rate=None))
    assert cluster.changes == [
        QuotaChanged(ALICE, "producer_byte_rate", 2_000),
        QuotaChanged(ALICE, "request_percentage", None),
        QuotaChanged(EVERY_USER, "controller_mutation_rate", None),
    ]
    assert cluster.state.quotas[ALICE] == {"producer_byte_rate": 2_000}
    assert EVERY_USER not in cluster.state.quotas


def test_nothing_is_written_if_nothing_changes() -> None:
    cluster = Cluster()
    alter(cluster, wanted(ALICE, producer_byte_rate=1_000))
    before = len(cluster.journal)
    assert alter(cluster, wanted(ALICE, producer_byte_rate=1_000, consumer_byte_rate=None)) == [(ALICE, None)]
    assert alter(cluster, wanted(ALICE, producer_byte_rate=5), dry=True) == [(ALICE, None)]
    assert alter(cluster, wanted(ALICE, nonsense=5), dry=True) == [
        (ALICE, ("INVALID_REQUEST", "Invalid configuration key nonsense"))
    ]
    assert len(cluster.journal) == before


@pytest.mark.parametrize(
    ("parts", "key", "value", "problem"),
    [
        ((), "producer_byte_rate", 1, "Invalid empty client quota entity"),
        ((("group", "g"),), "producer_byte_rate", 1, "Unhandled client quota entity type: group"),
        ((("user", ""),), "producer_byte_rate", 1, "Empty user not supported"),
        ((("client-id", ""),), "producer_byte_rate", 1, "Empty client-id not supported"),
        (
            (*ALICE, *HOME),
            "producer_byte_rate",
            1,
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ((("ip", "no address"),), "connection_creation_rate", 1, "no address is not a valid IP or resolvable host."),
        (HOME, "producer_byte_rate", 1, "Invalid configuration key producer_byte_rate"),
        (ALICE, "connection_creation_rate", 1, "Invalid configuration key connection_creation_rate"),
        (ALICE, "producer_byte_rate", 0, "Quota producer_byte_rate must be greater than 0"),
        (ALICE, "request_percentage", -1, "Quota request_percentage must be greater than 0"),
        (ALICE, "request_percentage", math.nan, "Quota request_percentage must be greater than 0"),
        (ALICE, "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        (ALICE, "consumer_byte_rate", 1e19, "Proposed value for consumer_byte_rate is too large for a LONG."),
        (
            HOME,
            "connection_creation_rate",
            2**31,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        (HOME, "connection_creation_rate", 0.5, "connection_creation_rate cannot be a fractional value."),
    ],
)
def test_refusals(parts: Parts, key: str, value: float, problem: str) -> None:
    cluster = Cluster()
    ((_, error), (_, fine)) = alter(cluster, wanted(parts, **{key: value}), wanted((("user", "b"),)))
    assert error == ("INVALID_REQUEST", problem)
    assert fine is None
    assert not cluster.state.quotas


def test_addresses_of_both_kinds() -> None:
    cluster = Cluster()
    for address in ("10.1.2.3", "::1", "2001:db8::7"):
        assert alter(cluster, wanted((("ip", address),), connection_creation_rate=1))[0][1] is None


def test_one_mistake_refuses_the_whole_entity() -> None:
    cluster = Cluster()
    alter(cluster, wanted(ALICE, producer_byte_rate=1, consumer_byte_rate=-1))
    assert not cluster.state.quotas


def test_an_entity_that_is_named_twice() -> None:
    cluster = Cluster()
    outcomes = alter(cluster, wanted(ALICE, producer_byte_rate=1), wanted(ALICE, producer_byte_rate=2))
    problem = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert outcomes == [(ALICE, ("INVALID_REQUEST", problem))]
    assert cluster.state.quotas == {ALICE: {"producer_byte_rate": 1}}  # as in Kafka


def test_a_snapshot_keeps_quotas() -> None:
    cluster = Cluster()
    alter(cluster, wanted(ALICE_AT_APP, producer_byte_rate=1), wanted(EVERY_USER, request_percentage=2.5))
    again = ClusterState()
    again.apply_all(entry.record for entry in snapshot(cluster.state))
    assert again.quotas == cluster.state.quotas
