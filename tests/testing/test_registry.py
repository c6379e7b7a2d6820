"""The schema registry of the pytest plugin."""

from __future__ import annotations

from tests.support.processes.registry import ask, record

from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry


def test_it_belongs_to_the_broker_and_outlives_its_restart(
    ottla_registry: Registry, ottla_broker: EmbeddedBroker
) -> None:
    assert ottla_registry is ottla_broker.registry
    assert ask(ottla_registry.url, "POST", "/subjects/s/versions", {"schema": record("R")}).content["id"] == 1
    ottla_broker.restart()
    assert ask(ottla_registry.url, "POST", "/subjects/s/versions", {"schema": record("R", "b")}).content["id"] == 2


def test_time_that_passes_does_not_hurt_it(ottla_broker: EmbeddedBroker) -> None:
    """Its session ends, its transactional id is forgotten: it joins again, and writes."""
    url = ottla_broker.registry.url
    assert ask(url, "POST", "/subjects/s/versions", {"schema": record("R")}).content["id"] == 1
    ottla_broker.clock.advance("8d")
    answer = ask(url, "POST", "/subjects/t/versions", {"schema": record("T")})
    assert answer.content["id"] == 2, answer
