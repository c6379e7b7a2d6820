"""The broker's clock: what takes minutes or days for others takes milliseconds here."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker


def members(bootstrap: str, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return len(admin.describe_consumer_groups([group])[group].result(WAIT_S).members)


def test_time_only_passes(ottla_broker: EmbeddedBroker) -> None:
    for duration in (-5, timedelta(seconds=-1), float("inf"), float("nan")):
        with pytest.raises(ValueError, match="time passes forwards"):
            ottla_broker.clock.advance(duration)


def test_a_silent_member_is_removed_when_its_session_is_over(ottla_broker: EmbeddedBroker) -> None:
    with Blocking(ottla_broker.bootstrap) as client:
        client.send("orders", b"x")
    settings = {
        "bootstrap.servers": ottla_broker.bootstrap,
        "group.id": "shop",
        "session.timeout.ms": 45_000,
        "heartbeat.interval.ms": 40_000,  # silent enough
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    until(lambda: bool(consumer.consume(1, 0.1)))
    assert members(ottla_broker.bootstrap, "shop") == 1
    ottla_broker.clock.advance("44s")
    assert members(ottla_broker.bootstrap, "shop") == 1
    ottla_broker.clock.advance("2s")
    assert members(ottla_broker.bootstrap, "shop") == 0
    consumer.close()


def test_a_new_group_begins_after_the_rebalance_delay(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> None:
    """With Kafka's default of 3 s, what is written meanwhile lies before the end of the topic at which it begins.

    Iceberg's Connect sink runs into this: its first commit is asked for before its tasks listen (compatibility.md).
    """
    broker = ottla_broker_factory(**{"group.initial.rebalance.delay.ms": 3_000})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "control", "auto.offset.reset": "latest"})
    with Blocking(broker.bootstrap) as client:
        client.send("control", b"before", partition=0)
        consumer.subscribe(["control"])
        until(lambda: consumer.poll(0.05) or members(broker.bootstrap, "control") == 1)
        client.send("control", b"while it waits", partition=0)
        assert consumer.poll(0.2) is None and consumer.assignment() == []
        broker.clock.advance("3s")
        until(lambda: consumer.poll(0.05) or consumer.assignment())

        def later() -> bytes | None:
            client.send("control", b"later", partition=0)
            found = consumer.poll(0.1)
            return None if found is None else found.value()

        assert until(later) == b"later", "the first that it gets"
    consumer.close()


def test_an_abandoned_transaction_is_aborted(ottla_broker: EmbeddedBroker) -> None:
    producer = Producer(
        {"bootstrap.servers": ottla_broker.bootstrap, "transactional.id": "t", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("orders", b"never seen", partition=0)
    producer.flush(WAIT_S)
    with Blocking(ottla_broker.bootstrap) as client:
        client.send("orders", b"behind it", partition=0)
    reader = Consumer(
        {"bootstrap.servers": ottla_broker.bootstrap, "group.id": "r", "isolation.level": "read_committed"}
    )
    reader.assign([TopicPartition("orders", 0, 0)])
    assert reader.consume(1, 0.5) == []  # held back by the open transaction
    ottla_broker.clock.advance("75s")
    found: list[bytes] = []
    until(lambda: bool(found.extend(each.value() for each in reader.consume(2, 0.1)) or found))
    assert found == [b"behind it"]
    reader.close()
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)


def test_segments_age(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> None:
    broker = ottla_broker_factory(**{"log.retention.check.interval.ms": 60_000, "log.roll.ms": 3_600_000})
    with Blocking(broker.bootstrap) as client:
        client.send("orders", b"old", partition=0)
        broker.clock.advance(timedelta(hours=2))
        client.send("orders", b"new", partition=0, timestamp=broker.clock.now_ms())
        broker.clock.advance("6d23h")
        assert [record.value for record in client.read("orders", 0)] == [b"new"]


def test_the_clock_only_goes_on(ottla_broker: EmbeddedBroker) -> None:
    before_ms = ottla_broker.clock.now_ms()
    ottla_broker.clock.advance("1h")
    ottla_broker.restart()
    ottla_broker.clock.advance(1.5)
    assert ottla_broker.clock.now_ms() - before_ms >= 3_601_500
    with pytest.raises(ValueError, match="is not a duration"):
        ottla_broker.clock.advance("soon")


def test_offsets_expire(ottla_broker: EmbeddedBroker) -> None:
    with Blocking(ottla_broker.bootstrap) as client:
        client.send("orders", b"x", partition=0)
    consumer = Consumer({"bootstrap.servers": ottla_broker.bootstrap, "group.id": "once", "enable.auto.commit": False})
    place = TopicPartition("orders", 0)
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    assert consumer.committed([place], timeout=WAIT_S)[0].offset == 1
    ottla_broker.clock.advance("7d1h")
    assert consumer.committed([place], timeout=WAIT_S)[0].offset < 0
    consumer.close()
