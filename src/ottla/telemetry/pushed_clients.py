"""PushedClients: the client instances whose metrics are told, as many as a setting says.

Who comes first stays, until nothing was pushed for as long as an instance is remembered. The values outlive the
connection of the client: what it pushed last, when it terminated, is told for a while.

Nobody can take all places for long:
- A connection has a few. Whoever pushes for more instances on it gives up its own oldest push.
- If all places are taken, a holder that has fewer than another one gets a place of the holder with the most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.model import limits
from ottla.telemetry.otlp import PushedMetrics
from ottla.telemetry.series import ClientSeries
from ottla.telemetry.subscription import TelemetryClient


class PushPlace(NamedTuple):
    """Who takes a place: `connection` stands for the connection, as long as the place is taken; `holder` is the
    principal, or the address of a client that did not authenticate.
    """

    connection: object
    holder: str


class PushedClient:
    """`resource` is what the client tells about itself in its pushes: its group, its transactional id, its rack."""

    __slots__ = ("client", "expires_ms", "place", "pushed_ms", "resource", "series")

    def __init__(self, client: TelemetryClient, place: PushPlace) -> None:
        self.client = client
        self.place = place
        self.resource: dict[str, str] = {}
        self.series = ClientSeries()
        self.pushed_ms = self.expires_ms = 0


class PushedClients:
    def __init__(self, most: int) -> None:
        self.left_out = 0  # values that were pushed and are not told
        self._most = most
        self._by_id: dict[str, PushedClient] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[PushedClient]:
        return iter(tuple(self._by_id.values()))

    def take(
        self, client: TelemetryClient, place: PushPlace, pushed: PushedMetrics, now_ms: int, expires_ms: int
    ) -> None:
        """Take over what a client pushed; it is told until `expires_ms`, if there is no other push before."""
        self.left_out += pushed.left_out
        found = self._by_id.get(client.client_instance_id)
        if found is None:
            if not self._makes_room(place):
                self.left_out += len(pushed.points)
                return
            found = self._by_id[client.client_instance_id] = PushedClient(client, place)
        found.pushed_ms, found.expires_ms = now_ms, expires_ms
        found.resource = pushed.resource
        self.left_out += found.series.take(pushed.points)

    def tidy(self, now_ms: int) -> None:
        for id in [id for id, each in self._by_id.items() if each.expires_ms <= now_ms]:
            del self._by_id[id]

    def _makes_room(self, place: PushPlace) -> bool:
        """Return whether there is room for one more, after another one perhaps gave way."""
        mine = [each for each in self._by_id.values() if each.place.connection is place.connection]
        if len(mine) >= limits.TELEMETRY_INSTANCES_PER_CONNECTION_MAX:
            self._drop_oldest(mine)
        if len(self._by_id) < self._most:
            return True
        taken = Counter(each.place.holder for each in self._by_id.values())
        holder, most = max(taken.items(), key=lambda each: each[1], default=("", 0))
        if most <= taken[place.holder] + 1:
            return False
        self._drop_oldest(each for each in self._by_id.values() if each.place.holder == holder)
        return True

    def _drop_oldest(self, clients: Iterable[PushedClient]) -> None:
        """Forget the client that has not pushed for longest."""
        oldest = min(clients, key=lambda each: each.pushed_ms)
        del self._by_id[oldest.client.client_instance_id]


def told_for_ms(idle_ms: int, *, is_last: bool) -> int:
    """Return how long a push is told, of a client that is remembered for `idle_ms`; `is_last`: it terminates."""
    return limits.TELEMETRY_IDLE_MS if is_last else idle_ms
