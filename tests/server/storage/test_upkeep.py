"""What happens by the clock does not grow with the number of partitions that have nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.server.talk import BROKER, TOPIC, alter, create, eventually, produce
from tests.support.requests.raw import RawConnection

from ottla.log.log import Log
from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.storage.partitions import Partitions
from ottla.testing.broker import EmbeddedBroker

Factory = Callable[..., EmbeddedBroker]


def all_opened(broker: EmbeddedBroker) -> bool:
    assert broker.node is not None
    return not broker.node.partitions.unopened


def test_idle_partitions_are_not_looked_at(ottla_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", 100)
        for index in range(100):
            produce(connection, "t", [b"x"], index=index)
        eventually(lambda: all_opened(ottla_broker), "all are opened")
        walks: list[Any] = []
        opened = Partitions.opened
        monkeypatch.setattr(Partitions, "opened", lambda self: walks.append(self) or opened(self))
        ottla_broker.clock.advance(2.5)  # flushes and removals have had their turns
    assert walks == []


def test_a_walk_over_all_partitions_lets_others_in_between(
    ottla_broker_factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PARTITIONS_VISITED_PER_TURN", 10)
    broker = ottla_broker_factory(**{"log.retention.check.interval.ms": 50, "log.segment.delete.delay.ms": 0})
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 100)
        eventually(lambda: all_opened(broker), "all are opened")
        loop: Any = broker._thread.loop
        events: list[str] = []
        monkeypatch.setattr(Log, "delete_old_segments", lambda *_: events.append("visit") and 0)
        running = [True]

        def tick() -> None:
            events.append("tick")
            if running:
                loop.call_soon(tick)

        loop.call_soon_threadsafe(tick)
        eventually(lambda: events.count("visit") >= 200, "two rounds")
        running.clear()
    between = "".join("v" if event == "visit" else " " for event in events).split()
    assert max(len(visits) for visits in between) <= 10


def test_many_changed_settings_are_one_change(ottla_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawConnection(ottla_broker.bootstrap) as connection:
        create(connection, "t", 5)
        for index in range(5):
            produce(connection, "t", [b"x"], index=index)
        configured: list[Partition] = []
        configure = Partition.configure
        monkeypatch.setattr(
            Partition, "configure", lambda self, config: configured.append(self) or configure(self, config)
        )
        alter(connection, TOPIC, "t", retention_ms=1_000_000, retention_bytes=1_000_000, segment_ms=1_000_000)
        assert len(configured) == 5
        alter(connection, BROKER, "", log_retention_ms=5_000_000, log_roll_ms=5_000_000)
        assert len(configured) == 10
        assert {partition.log.config.retention_ms for partition in configured} == {1_000_000}
