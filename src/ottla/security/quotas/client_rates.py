"""ClientRates: the measured rates of all clients for one kind of quota, and how long a client over its quota waits.

Nothing is measured for a client without a quota.
"""

from __future__ import annotations

from functools import partial

from ottla.security.quotas.limits_of_clients import ClientLimits, Quotas, RateOwner
from ottla.security.quotas.rates import SampledRate, Window
from ottla.security.quotas.sensors import Sensors


class ClientRates:
    def __init__(self, key: str, window: Window, longest_ms: int | None = None) -> None:
        """`key` is the kind of quota; a client waits for `longest_ms` at most, None: as long as it takes."""
        self._key = key
        self._window = window
        self._longest_ms = longest_ms
        self._limits = ClientLimits({}, key)
        self._rates: Sensors[RateOwner, SampledRate] = Sensors(partial(SampledRate, window))

    def __bool__(self) -> bool:
        """Whether a client may have a quota of this kind."""
        return bool(self._limits)

    def limits_in(self, quotas: Quotas) -> ClientLimits:
        """Return the limits to `use`; it changes nothing, so a worker may sort very many quotas."""
        return ClientLimits(quotas, self._key)

    def use(self, limits: ClientLimits) -> None:
        self._limits = limits

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        found = self._limits.find(user, client_id)
        if found is not None:
            self._rates.of(found[0], now_ms).record(value, now_ms)

    def throttle_ms(self, user: str, client_id: str, now_ms: int) -> int:
        """Return how long the client has to wait now."""
        found = self._limits.find(user, client_id)
        if found is None:
            return 0
        owner, limit = found
        throttle_ms = self._rates.of(owner, now_ms).throttle_ms(limit, now_ms)
        return throttle_ms if self._longest_ms is None else min(throttle_ms, self._longest_ms)

    def most_at_once(self, user: str, client_id: str) -> float | None:
        """Return the largest value after which a client that used nothing before would not have to wait; None if it has
        no quota.
        """
        found = self._limits.find(user, client_id)
        return None if found is None else found[1] * (self._window.samples - 1) * self._window.sample_ms / 1000
