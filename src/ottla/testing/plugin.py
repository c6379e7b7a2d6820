"""The pytest plugin: ask for `ottla_broker` and get a real broker, inside this process, on a free port.

    def test_orders(ottla_broker):
        producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})

No other module of Ottla is imported until a test asks for a broker, so the plugin does not slow down other tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import EmbeddedBroker
    from ottla.testing.registry import Registry
    from ottla.testing.secure import SecureBroker


@pytest.fixture
def ottla_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker for this test alone, with an empty data directory below `tmp_path`."""
    from ottla.testing.broker import EmbeddedBroker

    with EmbeddedBroker(tmp_path / "ottla") as broker:
        yield broker


@pytest.fixture
def ottla_secure_broker(tmp_path: Path) -> Iterator[SecureBroker]:
    """A broker with TLS, users and ACLs, for this test alone: give clients its `security` or `client_settings()`."""
    from ottla.testing.secure import SecureBroker

    with SecureBroker(tmp_path / "ottla-tls") as broker:
        yield broker


@pytest.fixture
def ottla_registry(ottla_broker: EmbeddedBroker) -> Registry:
    """The schema registry of `ottla_broker`: give clients its `url`."""
    return ottla_broker.registry


@pytest.fixture
def ottla_broker_factory(tmp_path: Path) -> Iterator[Callable[..., EmbeddedBroker]]:
    """Makes brokers with settings of your choice: `factory(**{"num.partitions": 4})`; all are stopped at the end. Their
    registries log in with `security`, settings of clients, if the first listener demands it.
    """
    from ottla.testing.broker import EmbeddedBroker

    started: list[EmbeddedBroker] = []

    def make(security: Mapping[str, str] | None = None, **settings: object) -> EmbeddedBroker:
        broker = EmbeddedBroker(tmp_path / f"ottla-{len(started)}", settings, security)
        started.append(broker)
        return broker.start()

    yield make
    for broker in started:
        broker.stop()
