"""Traffic: the bytes per second that this broker takes from producers of each tenant, and sends to its consumers.

Partitions count both since they were opened. Once a second the difference to the last look is added to the rates of the
tenant, which have the window of quotas (`quota.window.num` samples of `quota.window.size.seconds`). The first look at a
tenant counts nothing, because it is not known when its bytes were sent.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.config import Config
from ottla.model.settings.metrics import QUOTA_WINDOW_NUM, QUOTA_WINDOW_SIZE_SECONDS
from ottla.replica.partition import Partition
from ottla.security.quotas.rates import SampledRate, Window


class TrafficRates(NamedTuple):
    """Bytes per second."""

    produced: float
    consumed: float


class _Measured:
    __slots__ = ("consumed", "produced", "received_bytes", "sent_bytes")

    def __init__(self, window: Window) -> None:
        self.produced = SampledRate(window)
        self.consumed = SampledRate(window)
        self.received_bytes = 0  # since the last look
        self.sent_bytes = 0


class Traffic:
    def __init__(self, settings: Config) -> None:
        self._window = Window(settings[QUOTA_WINDOW_NUM], settings[QUOTA_WINDOW_SIZE_SECONDS] * 1000)
        self._tenants: dict[str, _Measured] = {}
        self._former: dict[Partition, tuple[int, int]] = {}  # bytes received and sent, at the last look
        self._seen: dict[Partition, tuple[int, int]] = {}  # the same, at the look that is under way

    def rates_of(self, tenant: str, now_ms: int) -> TrafficRates:
        found = self._tenants.get(tenant)
        if found is None:
            return TrafficRates(0.0, 0.0)
        return TrafficRates(found.produced.per_second(now_ms), found.consumed.per_second(now_ms))

    def see(self, tenant: str, partition: Partition) -> None:
        """Look at one partition of a tenant."""
        now = self._seen[partition] = partition.received_bytes, partition.sent_bytes
        measured = self._tenants.get(tenant)
        if measured is not None:
            before = self._former.get(partition, (0, 0))  # else it was opened since
            measured.received_bytes += now[0] - before[0]
            measured.sent_bytes += now[1] - before[1]

    def end_look(self, tenants: set[str], now_ms: int) -> None:
        """End a look at all partitions of these tenants."""
        self._former, self._seen = self._seen, {}
        for gone in self._tenants.keys() - tenants:
            del self._tenants[gone]
        for each in self._tenants.values():
            each.produced.record(each.received_bytes, now_ms)
            each.consumed.record(each.sent_bytes, now_ms)
            each.received_bytes = each.sent_bytes = 0
        for new in tenants - self._tenants.keys():
            self._tenants[new] = _Measured(self._window)
