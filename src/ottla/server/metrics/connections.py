"""Connections by listener, and how clients proved who they are."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model import limits
from ottla.observe.metrics.catalogue import connections as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps, Tally
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.security.logins import Logins


class ConnectionsCollector:
    def __init__(self, connections: ConnectionLimits, logins: Logins, listeners: Sequence[str]) -> None:
        self._connections = connections
        self._logins = logins
        self._listeners = listeners

    def collect(self, exposition: Exposition) -> Steps:
        tally = Tally(limits.METRICS_PER_SLICE)
        counts = dict.fromkeys(self._listeners, 0)
        for connection in tuple(self._connections.connections):
            name = connection.context.connection.listener
            counts[name] = counts.get(name, 0) + 1
            if tally.is_full():
                yield
        for listener, count in counts.items():
            exposition.add(told.CONNECTIONS, count, listener)
        for (listener, mechanism), login in self._logins.counts.items():
            exposition.add(told.LOGINS, login.successes, listener, mechanism)
            exposition.add(told.FAILED_LOGINS, login.failures, listener, mechanism)
