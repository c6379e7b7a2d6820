"""Verdicts about lag, from facts."""

from typing import Any

import pytest

from ottla.client.admin.group_descriptions import GroupMember
from ottla.client.admin.group_events import GroupPast, PastEvent
from ottla.client.explain.facts import FirstOpenTransaction, GroupState, PartitionFacts, QuotaFact
from ottla.client.explain.lag import LagVerdict, explain_lag
from ottla.model.ids import TopicPartition

ANNA = GroupMember("anna-1", None, "anna", "/10.0.0.1", 3, (TopicPartition("orders", 0), TopicPartition("orders", 1)))
BERT = GroupMember("bert-1", None, "bert", "/10.0.0.2", 3, (TopicPartition("orders", 2),))
EVENT = PastEvent(10_000, "left", 4, 0, "anna-1", None, "anna", "10.0.0.1", "", None, "", None, 1)


def part(
    index: int = 0, *, lag: int = 0, made: float | None = 0.0, read: float | None = 0.0, **more: Any
) -> PartitionFacts:
    """A partition that ends at 1000, which the member reads that owns it."""
    owner = {0: ANNA, 1: ANNA, 2: BERT}.get(index)
    found = PartitionFacts(
        TopicPartition("orders", index), 1000 - lag, 0, 1000, lag, 90.0 if lag else 0.0, made, read, 1000, owner=owner
    )
    return found._replace(**more)


def group(*parts: PartitionFacts, **more: Any) -> GroupState:
    state = GroupState("shop", "consumer", "Stable", 4, (ANNA, BERT), parts, 5.0)
    return state._replace(**more)


def causes(state: GroupState) -> list[str]:
    return [each.cause.value for each in explain_lag(state)]


def only(state: GroupState) -> LagVerdict:
    (verdict,) = explain_lag(state)
    return verdict


OPEN = FirstOpenTransaction(7, 900, "pay", "Ongoing", 61_000)

TABLE = {
    "no lag": (group(part(0), part(1)), ["keeps_up"]),
    "nothing at all": (group(), ["keeps_up"]),
    "commits from time to time": (group(part(0, lag=50, made=10, read=10)), ["keeps_up"]),
    "a little faster producer, little lag": (group(part(0, lag=50, made=12, read=10)), ["keeps_up"]),
    "topic is gone": (group(part(0, exists=False, records=None)), ["topic_deleted"]),
    "no leader": (group(part(0, has_leader=False, records=None), part(1)), ["no_leader"]),
    "not known": (group(part(0, error="may not be seen", records=None)), ["unknown"]),
    "records gone": (group(part(0, lag=990, start=500)), ["records_gone"]),
    "beyond the end": (group(part(0, committed=1200, records=0)), ["beyond_end"]),
    "empty": (group(part(0, lag=10, owner=None), members=(), state="Empty"), ["no_consumer"]),
    "empty without lag": (group(part(0, owner=None), members=(), state="Empty"), ["keeps_up"]),
    "rebalancing": (group(part(0, lag=10), state="PreparingRebalance"), ["rebalancing"]),
    "transaction": (group(part(0, lag=100, stable_end=900, is_stuck=True, transaction=OPEN)), ["open_transaction"]),
    "transaction that moves on": (
        group(part(0, lag=100, stable_end=900, is_stuck=False, transaction=OPEN)),
        ["consumer_stopped"],
    ),
    "transaction far ahead": (
        group(part(0, lag=900, stable_end=900, is_stuck=True, transaction=OPEN)),
        ["consumer_stopped"],
    ),
    "reader of everything passes the transaction": (
        group(part(0, lag=100, read=1.0, made=5.0, stable_end=900, is_stuck=True, transaction=OPEN)),
        ["slow_consumer"],
    ),
    "unassigned": (group(part(3, lag=10)), ["not_assigned"]),
    "unassigned, of a streams group": (
        group(part(3, lag=10), members=(ANNA._replace(partitions=()),), kind="streams"),
        ["consumer_stopped"],
    ),
    "stopped": (group(part(0, lag=10), part(1)), ["consumer_stopped"]),
    "stopped, the other member gets on": (group(part(0, lag=10), part(2, read=5)), ["consumer_stopped"]),
    "stuck": (group(part(0, lag=10), part(1, read=5, made=5)), ["stuck_partition"]),
    "slow": (group(part(0, lag=500, made=20, read=10)), ["slow_consumer"]),
    "catching up": (group(part(0, lag=500, made=5, read=10)), ["catching_up"]),
    "hot": (
        group(part(0, lag=500, made=100, read=10), part(1, made=2, read=2), part(2, made=3, read=3)),
        ["slow_consumer", "hot_partition"],
    ),
    "hot, but keeps up": (group(part(0, made=100, read=100), part(1, made=2, read=2), part(2)), ["keeps_up"]),
    "throttled": (
        group(
            part(0, lag=500, made=20, read=10, record_bytes=100.0),
            quotas=(QuotaFact("anna", 1_100.0, "--client-id anna"),),
        ),
        ["slow_consumer", "throttled"],
    ),
    "quota is not reached": (
        group(
            part(0, lag=500, made=20, read=10, record_bytes=100.0),
            quotas=(QuotaFact("anna", 9_000.0, "--client-id anna"),),
        ),
        ["slow_consumer"],
    ),
    "several causes": (
        group(part(0, lag=10), part(2, lag=500, made=20, read=10), part(3, has_leader=False, records=None)),
        ["no_leader", "consumer_stopped", "slow_consumer", "hot_partition"],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_verdicts(case: str) -> None:
    state, expected = TABLE[case]
    assert causes(state) == expected


@pytest.mark.parametrize("case", [case for case, (_, expected) in TABLE.items() if expected != ["keeps_up"]])
def test_every_verdict_says_where(case: str) -> None:
    state, _ = TABLE[case]
    for verdict in explain_lag(state):
        assert verdict.partitions and verdict.evidence + verdict.advice and verdict.summary


def test_departure_of_the_last_member_is_told() -> None:
    timed_out = EVENT._replace(kind="timed_out", setting="session.timeout.ms", setting_value=45_000)
    past = GroupPast("shop", 1, 70_000, 0, (EVENT._replace(client_id="carl"), timed_out))
    verdict = only(group(part(0, lag=10, owner=None), members=(), state="Empty", past=past))
    assert verdict.evidence == (
        "the last member, anna on 10.0.0.1, timed out (session.timeout.ms=45000) 1 min ago",
        "the first record that was not read has waited for 1 min 30 s",
    )


def test_transactions_are_named_and_can_be_ended() -> None:
    held = part(0, lag=100, stable_end=900, is_stuck=True, transaction=OPEN)
    verdict = only(group(held))
    assert "transactional id pay, open for 1 min 1 s" in verdict.summary
    assert verdict.advice[-1] == "or end it: ottla txn abort pay"
    hanging = held._replace(transaction=OPEN._replace(transactional_id=None))
    assert only(group(hanging)).advice[-1] == "or end it: ottla txn abort --partition orders:0 --start-offset 900"


def test_one_transaction_in_many_partitions_is_one_verdict() -> None:
    held = [part(index, lag=100, stable_end=900, is_stuck=True, transaction=OPEN) for index in range(3)]
    assert only(group(*held)).partitions == tuple(each.partition for each in held)


def test_arithmetic_of_catching_up() -> None:
    assert "in 1 min 40 s" in only(group(part(0, lag=500, made=5, read=10))).summary


def test_group_without_commits_says_so() -> None:
    assert only(group(part(0, committed=None, records=None))).evidence == ("nothing was committed yet for orders-0",)
