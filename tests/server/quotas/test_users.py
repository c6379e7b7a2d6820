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


def test_a_user_has_a_quota_and_another_one_has_none(tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
    }
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        set_quota(broker, {"user": "alice"}, "producer_byte_rate", 10_000.0)
        assert waits_of(broker, "admin") == []
        (wait_s,) = waits_of(broker, "alice")
        assert 4.9 < wait_s < 5.2  # 150,000 bytes and a header, of which 100,000 are those of the window
