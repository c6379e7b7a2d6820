"""ConnectionRates: how many connections per second a node accepts, as Kafka's ConnectionQuotas.

- `max.connection.creation.rate` bounds the whole node, and with a listener's prefix one listener. A connection above it
  is accepted later: its listener waits, and the connections behind it wait in the kernel's queue. The inter-broker
  listener counts only for itself if there are others, so clients cannot keep brokers out.
- The quota `connection_creation_rate` bounds an IP address. A connection above it is closed, after the wait, so that a
  client which connects again at once is slowed down.

No wait is longer than one sample of the quota's window. While nothing is limited, `active` is False.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ottla.model.limits import INT32_MAX
from ottla.model.node_config import NodeConfig
from ottla.model.settings.metrics import QUOTA_WINDOW_NUM, QUOTA_WINDOW_SIZE_SECONDS
from ottla.model.settings.network import MAX_CONNECTION_CREATION_RATE
from ottla.security.host import comparable_host
from ottla.security.quotas.limits_of_clients import AddressLimits, Quotas
from ottla.security.quotas.rates import SampledRate, Window
from ottla.security.quotas.sensors import Sensors
from ottla.server.settings.listener_config import listener_config


class ConnectionRates:
    def __init__(
        self, node: NodeConfig, listeners: Sequence[str], inter_broker: str, now_ms: Callable[[], int]
    ) -> None:
        """`listeners` are the names of all listeners, `inter_broker` is the one of other brokers."""
        self.active = False
        self._now_ms = now_ms
        self._protected = inter_broker if len(listeners) > 1 else None
        settings = node.broker
        self._window = window = Window(settings[QUOTA_WINDOW_NUM], settings[QUOTA_WINDOW_SIZE_SECONDS] * 1000)
        self._node = SampledRate(window)
        self._listeners = {name: SampledRate(window) for name in listeners}
        self._addresses: Sensors[str, SampledRate] = Sensors(partial(SampledRate, window))
        self._address_limits = AddressLimits({})
        self.configure(node)

    def configure(self, node: NodeConfig) -> None:
        """Apply the current settings."""
        setting = MAX_CONNECTION_CREATION_RATE
        self._limit = node.broker[setting]
        self._limits = {name: listener_config(node, name)[setting] for name in self._listeners}
        self._activate()

    def sorted(self, quotas: Quotas) -> Callable[[], None]:
        """Sort quotas, perhaps in a worker; return what applies them, on the loop."""
        limits = AddressLimits(quotas)

        def apply() -> None:
            self._address_limits = limits
            self._activate()

        return apply

    def _activate(self) -> None:
        self.active = bool(self._address_limits) or min(self._limit, *self._limits.values()) < INT32_MAX

    def accepted(self, listener: str) -> int:
        """Count a new connection; return how long it and those behind it have to wait, in milliseconds."""
        now_ms = self._now_ms()
        return min(
            max(rate.throttle_ms(limit, now_ms) for rate, limit in self._counted(listener, 1, now_ms)),
            self._window.sample_ms,
        )

    def refused(self, listener: str, address: str) -> int:
        """Count a connection of an address; return 0, or the time after which it is to be closed."""
        limit = self._address_limits.find(address)
        if limit is None:
            return 0
        now_ms = self._now_ms()
        rate = self._addresses.of(comparable_host(address), now_ms)
        rate.record(1, now_ms)
        throttle_ms = min(rate.throttle_ms(limit, now_ms), self._window.sample_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
            self._counted(listener, -1, now_ms)
        return throttle_ms

    def _counted(self, listener: str, connections: int, now_ms: int) -> list[tuple[SampledRate, int]]:
        """Count connections of a listener; return the rates to which they belong, with their limits."""
        found = [(self._listeners[listener], self._limits[listener])]
        if listener != self._protected:
            found.append((self._node, self._limit))
        for rate, _ in found:
            rate.record(connections, now_ms)
        return found
