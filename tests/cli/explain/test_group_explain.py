"""`ottla group explain`, with each cause really provoked by stock clients."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from tests.cli.conftest import Run, invoke, started
from tests.cli.explain.actors import GROUP, commit, commit_messages, member, produce, running
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker

Ottla = Callable[..., Run]
PARTITIONS = 3


@pytest.fixture
def orders(ottla_broker: EmbeddedBroker) -> EmbeddedBroker:
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("orders", partitions=PARTITIONS)
    return ottla_broker


def explain(ottla: Ottla, seconds: float = 1.0) -> Any:
    return ottla("group", "explain", GROUP, "--json", "--seconds", str(seconds)).json


def causes(found: Any) -> dict[str, Any]:
    return {each["cause"]: each for each in found["causes"]}


def events(found: Any, kind: str) -> list[Any]:
    return [each for each in found["events"] if each["kind"] == kind]


def test_group_that_keeps_up(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 10)
    consumer = member(orders)
    commit(consumer, 10)
    found = explain(ottla)
    assert causes(found).keys() == {"keeps_up"}
    assert {each["kind"] for each in found["events"]} >= {"joined", "rebalance_began", "rebalance_ended"}
    assert (found["coordinator"], found["members"]) == (1, 1)
    text = ottla("group", "explain", GROUP, "--seconds", "0.5").out
    assert "the group keeps up: 0 records behind" in text
    assert "member reader of host 127.0.0.1 joined" in text
    consumer.close()


def test_consumer_that_stopped(ottla: Ottla, orders: EmbeddedBroker) -> None:
    """It sends heartbeats, and does not read."""
    produce(orders, 10)
    consumer = member(orders)
    commit(consumer, 3)
    cause = causes(explain(ottla))["consumer_stopped"]
    assert "member reader on 127.0.0.1 is there, but does not get on" in cause["summary"]
    assert cause["partitions"] == ["orders-0"]
    consumer.close()


def test_consumer_that_is_gone(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 10)
    consumer = member(orders)
    commit(consumer, 3)
    consumer.close()
    until(lambda: events(explain(ottla, 0.1), "empty"))
    cause = causes(explain(ottla))["no_consumer"]
    assert "7 records behind in 1 partition" in cause["summary"]
    assert "the last member, reader on 127.0.0.1, left" in cause["evidence"][0]


def test_slow_consumer(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 5_000)
    consumer = member(orders)
    commit(consumer, 1)

    def read() -> None:
        commit_messages(consumer, consumer.consume(1, timeout=0.5))
        time.sleep(0.1)

    with running(read), running(lambda: produce(orders, 100)):
        cause = causes(explain(ottla, 2))["slow_consumer"]
    assert cause["partitions"] == ["orders-0"]
    assert "its producers write" in cause["summary"]
    consumer.close()


def test_consumer_that_catches_up(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 20_000)
    consumer = member(orders)
    commit(consumer, 1)

    def read() -> None:
        commit_messages(consumer, consumer.consume(5, timeout=0.5))
        time.sleep(0.05)

    with running(read):
        cause = causes(explain(ottla))["catching_up"]
    assert "at this rate in" in cause["summary"]
    consumer.close()


def test_stuck_partition(ottla: Ottla, orders: EmbeddedBroker) -> None:
    for partition in (0, 1):
        produce(orders, 5_000, partition)
    consumer = member(orders)
    commit(consumer, 3)
    place = 0

    def read() -> None:
        nonlocal place
        place = min(place + 1, 5_000)
        commit(consumer, place, partition=1)
        time.sleep(0.05)

    with running(read):
        until(lambda: place)
        cause = causes(explain(ottla))["stuck_partition"]
    assert cause["partitions"] == ["orders-0"]
    assert any("--from-offset 3" in each for each in cause["advice"])
    consumer.close()


def test_hot_partition(ottla: Ottla, orders: EmbeddedBroker) -> None:
    for partition in range(PARTITIONS):
        produce(orders, 10, partition)
    consumer = member(orders)
    for partition in range(PARTITIONS):
        commit(consumer, 1, partition)
    with running(lambda: produce(orders, 50)):
        cause = causes(explain(ottla, 2))["hot_partition"]
    assert cause["partitions"] == ["orders-0"]
    consumer.close()


def test_open_transaction(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 10)
    producer = Producer({"bootstrap.servers": orders.bootstrap, "transactional.id": "pay"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"paid", partition=0)
    assert producer.flush(60) == 0
    produce(orders, 5)
    consumer = member(orders)
    commit(consumer, 10)
    cause = causes(explain(ottla))["open_transaction"]
    assert "transactional id pay, open for" in cause["summary"]
    assert cause["advice"][-1] == "or end it: ottla txn abort pay"
    ottla("txn", "abort", "pay")
    assert "open_transaction" not in causes(explain(ottla, 0.2))
    consumer.close()


def test_records_that_were_deleted(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 10)
    consumer = member(orders)
    commit(consumer, 3)
    with Blocking(orders.bootstrap) as client:
        client.admin.topics.delete_records("orders", {0: 8})
    cause = causes(explain(ottla, 0.2))["records_gone"]
    assert cause["summary"].startswith("5 records were deleted")
    assert cause["evidence"] == ["orders-0: the group is at 3, the partition begins at 8"]
    consumer.close()


def test_throttled_consumer(ottla: Ottla, orders: EmbeddedBroker) -> None:
    ottla("quota", "set", "--client-id", "reader", "consumer_byte_rate=20000")
    produce(orders, 3_000, size=1_000, **{"batch.num.messages": 2})  # a Fetch returns at least a batch
    consumer = member(orders, **{"fetch.message.max.bytes": 4_000})
    commit(consumer, 1)
    with running(lambda: commit_messages(consumer, consumer.consume(5, timeout=0.5))):
        found = until(lambda: causes(explain(ottla, 5)), lambda each: "throttled" in each)["throttled"]
    assert "client id reader" in found["summary"]
    assert found["advice"] == ["ottla quota set --client-id reader consumer_byte_rate=…"]
    consumer.close()


@pytest.mark.parametrize(
    ("protocol", "setting"), [("classic", "session.timeout.ms"), ("consumer", "consumer.session.timeout.ms")]
)
def test_session_that_ended(ottla: Ottla, orders: EmbeddedBroker, protocol: str, setting: str) -> None:
    consumer = member(orders, **{"group.protocol": protocol})
    until(lambda: events(explain(ottla, 0.1), "rebalance_ended"))
    orders.clock.advance("46s")
    (event,) = until(lambda: events(explain(ottla, 0.1), "timed_out"))
    assert event["text"].startswith(
        f"member reader of host 127.0.0.1 sent no heartbeat for {setting}=45000 and was removed"
    )
    assert setting in event["advice"]
    consumer.close()


def test_member_that_does_not_rejoin(ottla: Ottla, orders: EmbeddedBroker) -> None:
    """It sends heartbeats, but its application does not poll: everybody waits for it, until its time is up."""
    produce(orders, 10)
    slow = {"session.timeout.ms": 60_000, "max.poll.interval.ms": 60_000, "heartbeat.interval.ms": 100}
    first = member(orders, **slow)
    commit(first, 3)
    second = Consumer({"bootstrap.servers": orders.bootstrap, "group.id": GROUP, "client.id": "second", **slow})
    second.subscribe(["orders"])
    with running(lambda: second.poll(0.1)):
        cause = until(lambda: causes(explain(ottla, 0.1)), lambda each: "rebalancing" in each)["rebalancing"]
        assert "PreparingRebalance" in cause["summary"]

        def later() -> list[Any]:
            orders.clock.advance("5s")
            return events(explain(ottla, 0.3), "timed_out")

        event = until(later)[0]
    assert (
        "member reader of host 127.0.0.1 did not take part in the rebalance within max.poll.interval.ms=60000"
        in (event["text"])
    )
    assert "lower max.poll.records" in event["advice"]
    second.close()
    first.close()


def test_group_that_is_full(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> None:
    broker = ottla_broker_factory(**{"group.max.size": 1})
    env = {"OTTLA_BOOTSTRAP": broker.bootstrap}
    assert invoke("topic", "create", "orders", env=env).code == 0
    first = member(broker)
    second = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP, "client.id": "second"})
    second.subscribe(["orders"])
    with running(lambda: second.poll(0.1)):
        (event,) = until(
            lambda: events(invoke("group", "explain", GROUP, "--json", "-s", "0.1", env=env).json, "refused")
        )
    assert "member second of host 127.0.0.1 was refused (GROUP_MAX_SIZE_REACHED, group.max.size=1)" in event["text"]
    second.close()
    first.close()


def test_static_member_that_is_replaced(ottla: Ottla, orders: EmbeddedBroker) -> None:
    first = member(orders, **{"group.instance.id": "till"})
    second = member(orders, **{"group.instance.id": "till"})
    (event,) = until(lambda: events(explain(ottla, 0.1), "replaced"))
    assert event["text"].startswith("member till of host 127.0.0.1 came back in place of")
    second.close()
    first.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_changed_subscription_and_deleted_topic(ottla: Ottla, orders: EmbeddedBroker, protocol: str) -> None:
    with Blocking(orders.bootstrap) as client:
        client.admin.topics.create("bills", partitions=1)
        consumer = member(orders, "orders", **{"group.protocol": protocol})
        consumer.subscribe(["orders", "bills"])
        with running(lambda: consumer.poll(0.1)):
            (event,) = until(lambda: events(explain(ottla, 0.1), "subscription_changed"))
            assert event["text"] == "member reader of host 127.0.0.1 changed its subscription: +bills"
            client.admin.topics.delete("bills")
            (event,) = until(lambda: events(explain(ottla, 0.1), "topics_changed"))
            assert event["text"] == "topics that the group reads changed: bills=deleted"
        consumer.close()


def test_share_group(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 10)
    ottla("config", "set", "group", GROUP, "share.auto.offset.reset=earliest")
    ottla("share", "consume", "orders", "-g", GROUP, "-n", "4")
    found = explain(ottla, 0.2)
    assert causes(found).keys() == {"no_consumer"}
    assert (found["type"], sum(each["lag"] or 0 for each in found["partitions"])) == ("share", 6)
    assert events(found, "left")


def test_number_of_events_and_missing_group(ottla: Ottla, orders: EmbeddedBroker) -> None:
    member(orders).close()
    until(lambda: events(explain(ottla, 0.1), "empty"))
    assert len(ottla("group", "explain", GROUP, "-s", "0.1", "-n", "2", "--json").json["events"]) == 2
    assert ottla("group", "explain", GROUP, "-s", "0.1", "-n", "0", "--json").json["events"] == []
    missing = ottla("group", "explain", "nobody", code=1)
    assert "nobody" in missing.err and "ottla group list" in missing.err


def test_lag_once_and_as_json_lines(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 10)
    consumer = member(orders)
    commit(consumer, 3)
    (line,) = ottla("group", "lag", GROUP, "--once", "-i", "0.2", "--json").lines
    assert '"lag": 7' in line and "\n" not in line
    shown = ottla("group", "lag", GROUP, "-i", "0.2").lines
    assert shown[0].startswith(f"{GROUP}  classic  Stable")
    assert shown[2].split("\t")[:4] == ["orders-0", "3", "10", "7"]
    consumer.close()


def test_lag_is_watched_until_ctrl_c(ottla: Ottla, orders: EmbeddedBroker) -> None:
    produce(orders, 10)
    consumer = member(orders)
    commit(consumer, 3)
    with started("group", "lag", GROUP, "--watch", "-i", "0.1", "--json", "-b", orders.bootstrap) as process:
        assert process.stdout is not None and process.stderr is not None
        looks = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert [each["partitions"][0]["lag"] for each in looks] == [7, 7, 7]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    consumer.close()
