"""Connections by listener and state, and how clients proved who they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.model import limits
from ottla.observe.metrics.catalogue import connections as told
from ottla.observe.metrics.exposition import Exposition
from ottla.security.principal import ANONYMOUS
from ottla.server.loop.slices import Steps, Tally
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.security.logins import Logins

_OPEN, _AUTHENTICATING, _HANDSHAKING = "open", "authenticating", "handshaking"


class ConnectionsCollector:
    def __init__(self, connections: ConnectionLimits, logins: Logins, listeners: Sequence[str]) -> None:
        self._connections = connections
        self._logins = logins
        self._listeners = listeners

    def collect(self, exposition: Exposition) -> Steps:
        tally = Tally(limits.METRICS_PER_SLICE)
        counts: Counter[tuple[str, str]] = Counter()
        for connection in tuple(self._connections.connections):
            context = connection.context
            peer = context.connection
            is_unproven = peer.protocol.has_sasl and context.principal is ANONYMOUS
            counts[peer.listener, _AUTHENTICATING if is_unproven else _OPEN] += 1
            if tally.is_full():
                yield
        for handshakes in self._connections.handshakes:
            counts[handshakes.listener, _HANDSHAKING] += len(handshakes)
        for listener in self._listeners:
            for state in (_OPEN, _AUTHENTICATING, _HANDSHAKING):
                exposition.add(told.CONNECTIONS, counts[listener, state], listener, state)
            every = sum(counts[listener, state] for state in (_OPEN, _AUTHENTICATING, _HANDSHAKING))
            exposition.add(told.ALL_CONNECTIONS, every, listener)
            exposition.add(told.REFUSED, self._connections.refused[listener], listener)
        for (listener, mechanism), login in self._logins.counts.items():
            exposition.add(told.LOGINS, login.successes, listener, mechanism)
            exposition.add(told.FAILED_LOGINS, login.failures, listener, mechanism)
