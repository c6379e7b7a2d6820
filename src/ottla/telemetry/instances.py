"""ClientInstances: the client instances that a node knows, found again by their ids and forgotten as Kafka does.

Clients choose the ids. A connection has a few instances at a time (ConnectionInstances), and they end with it.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model import limits
from ottla.telemetry.instance import ClientInstance
from ottla.telemetry.subscription import TelemetryClient


class ClientInstances:
    def __init__(self) -> None:
        self._by_id: dict[bytes, ClientInstance] = {}  # whoever was used last is at the end

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    def find(
        self,
        id: bytes,
        client: TelemetryClient,
        version: int,
        now_ms: int,
        make: Callable[[TelemetryClient], ClientInstance],
    ) -> ClientInstance:
        """Return the instance, made anew if it is not known or knows older subscriptions than `version`. What was known
        of the client first counts, as with Kafka: a client has several connections.
        """
        found = self._by_id.pop(id, None)
        if found is None or found.version != version:
            found = make(client if found is None else found.client)
            if len(self._by_id) >= limits.TELEMETRY_INSTANCES_MAX:
                del self._by_id[next(iter(self._by_id))]
        found.expires_ms = now_ms + found.idle_ms
        self._by_id[id] = found
        return found

    def drop(self, id: bytes) -> None:
        self._by_id.pop(id, None)

    def tidy(self, now_ms: int) -> None:
        """Forget instances that were not heard of for long."""
        for id in [id for id, each in self._by_id.items() if each.expires_ms <= now_ms]:
            del self._by_id[id]


class ConnectionInstances:
    """The instances that were made by requests of one connection, as many as a limit says; calling it ends them."""

    __slots__ = ("_ids", "_instances")

    def __init__(self, instances: ClientInstances) -> None:
        self._instances = instances
        self._ids: dict[bytes, None] = {}  # the oldest is first

    def __call__(self) -> None:
        """The connection is closed."""
        for id in self._ids:
            self._instances.drop(id)
        self._ids.clear()

    def made(self, id: bytes) -> None:
        """An instance is made by this connection: the oldest one gives way if there are too many."""
        self._ids.pop(id, None)
        self._ids[id] = None
        if len(self._ids) > limits.TELEMETRY_INSTANCES_PER_CONNECTION_MAX:
            oldest = next(iter(self._ids))
            del self._ids[oldest]
            self._instances.drop(oldest)
