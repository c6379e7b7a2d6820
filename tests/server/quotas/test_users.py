"""Quotas of authenticated users: the principal of a connection decides, whatever its client id."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer, ThrottleEvent
from tests.server.quotas.quota_records import set_quota
from tests.server.security.secured import PASSWORDS, plain_jaas
from tests.support.waiting import WAIT_S

from ottla.testing.broker import EmbeddedBroker

TOPIC = "t"


def waits_of(broker: EmbeddedBroker, user: str) -> list[float]:
    """Write 150 kB as a user; the waits that the client was told."""
    told: list[float] = []

    def throttled(event: ThrottleEvent) -> None:
        told.append(event.throttle_time)

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "throttle_cb": throttled,
        }
    )
    producer.produce(TOPIC, b"x" * 150_000)
    assert producer.flush(WAIT_S) == 0
    return told


SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
}
# The client id is librdkafka's default. The most specific entity comes last.
ENTITIES: list[dict[str, str | None]] = [
    {"client-id": None},
    {"client-id": "rdkafka"},
    {"user": None},
    {"user": None, "client-id": None},
    {"user": None, "client-id": "rdkafka"},
    {"user": "alice"},
    {"user": "alice", "client-id": None},
    {"user": "alice", "client-id": "rdkafka"},
]


def test_every_kind_of_entity_and_the_most_specific_one_counts(tmp_path: Path) -> None:
    """One quota after the other is set; each is the first that counts, since those before are larger or smaller."""
    with EmbeddedBroker(tmp_path / "data", SETTINGS) as broker:
        waits_of(broker, "alice")  # the topic is made
        for number, entity in enumerate(ENTITIES):
            rate = 10_000.0 if number % 2 else 10_000_000.0
            set_quota(broker, entity, "producer_byte_rate", rate)
            broker.clock.advance("60s")  # nothing is in the window any more
            assert bool(waits_of(broker, "alice")) == (number % 2 == 1), entity
        set_quota(broker, ENTITIES[-1], "producer_byte_rate", None)
        broker.clock.advance("60s")
        assert waits_of(broker, "alice") == [], "the one before counts again"


def test_a_user_has_a_quota_and_another_one_has_none(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", SETTINGS) as broker:
        set_quota(broker, {"user": "alice"}, "producer_byte_rate", 10_000.0)
        assert waits_of(broker, "admin") == []
        (wait_s,) = waits_of(broker, "alice")
        assert 4.9 < wait_s < 5.2  # 150,000 bytes and a header, of which 100,000 are those of the window
