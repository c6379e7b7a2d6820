"""Logins in the metrics of a node: those that succeeded and those that failed, by listener and mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.metrics.scraping import ON, scraped
from tests.server.security.secured import log_in, plain_jaas
from tests.support.requests.raw import RawConnection

from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
    "connection.failed.authentication.delay.ms": "1",
}


def test_logins_are_told(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", ON | SETTINGS) as broker:
        before = counts(broker)
        for _ in range(2):
            with RawConnection(broker.bootstrap) as connection:
                log_in(connection, "alice")
        for _ in range(3):
            with RawConnection(broker.bootstrap) as connection:
                connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                answer: Any = connection.call(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guessed"), 2)
                assert answer.error_code
        assert [now - then for now, then in zip(counts(broker), before, strict=True)] == [2, 3]


def counts(broker: EmbeddedBroker) -> list[float]:
    """The successes and the failures with PLAIN so far; there is no sample before the first."""
    samples = scraped(broker).samples
    labels = (("listener", "SASL_PLAINTEXT"), ("mechanism", "PLAIN"))
    return [samples.get((f"ottla_authentication_{each}_total", labels), 0.0) for each in ("successes", "failures")]
