"""PushedClients: the client instances whose metrics are told, as many as a setting says.

Who comes first stays, until nothing was pushed for as long as an instance is remembered. The values outlive the
connection of the client: what it pushed last, when it terminated, is told for a while.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.model import limits
from ottla.telemetry.otlp import PushedMetrics
from ottla.telemetry.series import ClientSeries
from ottla.telemetry.subscription import TelemetryClient


class PushedClient:
    """`resource` is what the client tells about itself in its pushes: its group, its transactional id, its rack."""

    __slots__ = ("client", "expires_ms", "pushed_ms", "resource", "series")

    def __init__(self, client: TelemetryClient) -> None:
        self.client = client
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

    def take(self, client: TelemetryClient, pushed: PushedMetrics, now_ms: int, expires_ms: int) -> None:
        """Take over what a client pushed; it is told until `expires_ms`, if there is no other push before."""
        self.left_out += pushed.left_out
        found = self._by_id.get(client.client_instance_id)
        if found is None:
            if len(self._by_id) >= self._most:
                self.left_out += len(pushed.points)
                return
            found = self._by_id[client.client_instance_id] = PushedClient(client)
        found.pushed_ms, found.expires_ms = now_ms, expires_ms
        found.resource = pushed.resource
        self.left_out += found.series.take(pushed.points)

    def tidy(self, now_ms: int) -> None:
        for id in [id for id, each in self._by_id.items() if each.expires_ms <= now_ms]:
            del self._by_id[id]


def told_for_ms(idle_ms: int, *, is_last: bool) -> int:
    """Return how long a push is told, of a client that is remembered for `idle_ms`; `is_last`: it terminates."""
    return limits.TELEMETRY_IDLE_MS if is_last else idle_ms
