"""Whose metrics are told if there are too many clients."""

from __future__ import annotations

from ottla.model import limits
from ottla.telemetry.otlp import MetricPoint, PushedMetrics
from ottla.telemetry.pushed_clients import PushedClients, PushPlace
from ottla.telemetry.subscription import TelemetryClient

PUSHED = PushedMetrics({}, [MetricPoint("m", (), 1, is_counter=False, is_delta=False)], 0)


class Places:
    def __init__(self, most: int) -> None:
        self.clients = PushedClients(most)
        self._now_ms = 0

    def push(self, id: str, holder: str = "alice", connection: object = None) -> None:
        """A push over a connection of its own, unless one is given."""
        self._now_ms += 1
        client = TelemetryClient(id, "app", "java", "1", "10.0.0.1", "4000")
        place = PushPlace(object() if connection is None else connection, holder)
        self.clients.take(client, place, PUSHED, self._now_ms, 1_000)

    def told(self) -> list[str]:
        return sorted(each.client.client_instance_id for each in self.clients)


def test_a_connection_has_few_places() -> None:
    places, connection = Places(100), object()
    places.push("other")
    ids = [f"i{n}" for n in range(limits.TELEMETRY_INSTANCES_PER_CONNECTION_MAX + 2)]
    for id in ids:
        places.push(id, connection=connection)
    assert places.told() == [*ids[2:], "other"]
    places.push(ids[2], connection=connection)
    places.push("new", connection=connection)
    assert places.told() == [ids[2], *ids[4:], "new", "other"], "whoever has not pushed for longest gives way"


def test_who_comes_first_stays() -> None:
    places = Places(2)
    for id in ("a", "b", "c"):
        places.push(id)
    assert places.told() == ["a", "b"] and places.clients.left_out == 1


def test_nobody_keeps_all_places_from_others() -> None:
    places = Places(4)
    for n in range(8):
        places.push(f"a{n}", "alice")
    assert places.told() == ["a0", "a1", "a2", "a3"]
    for n in range(3):
        places.push(f"b{n}", "bob")
    assert places.told() == ["a2", "a3", "b0", "b1"]
    places.push("a0", "alice")
    assert places.told() == ["a2", "a3", "b0", "b1"], "both have the same"
    places.push("c", "carol")
    assert places.told() == ["a3", "b0", "b1", "c"]
    places.push("d", "dave")
    places.push("e", "eve")
    assert places.told() == ["a3", "b1", "c", "d"]


def test_no_places() -> None:
    places = Places(0)
    places.push("a")
    assert places.told() == []
