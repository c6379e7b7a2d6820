"""ClientQuotas: the quotas of users and client ids on this node, as Kafka has them.

- `producer_byte_rate`, `consumer_byte_rate`: bytes per second of Produce requests and of fetched records;
- `request_percentage`: the share of the event loop's time that a client's requests may take. A node has one loop, so
  100 means all of its time, and a larger quota limits nothing;
- `controller_mutation_rate`: partitions per second that are created or deleted, counted by the active controller.

An answer is never delayed. A client over its quota is told in `throttle_time_ms` how long to wait, and its connection
is not read for that time (KIP-219). A fetch over its quota is answered without records, so these bytes do not count.
Other brokers and controllers are not throttled.

While no quota is set, `active` is False, and nothing is measured.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from ottla.model.config import Config
from ottla.model.settings.metrics import (
    CONTROLLER_QUOTA_WINDOW_NUM,
    CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS,
    QUOTA_WINDOW_NUM,
    QUOTA_WINDOW_SIZE_SECONDS,
)
from ottla.security.quotas.client_rates import ClientRates
from ottla.security.quotas.limits_of_clients import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientLimits,
    Quotas,
    RateOwner,
)
from ottla.security.quotas.mutations import PartitionQuota
from ottla.security.quotas.rates import Window
from ottla.security.quotas.sensors import Sensors
from ottla.security.quotas.token_bucket import TokenBucket
from ottla.server.loop.runtime import Runtime
from ottla.server.quotas.charges import Charge, is_exempt
from ottla.server.quotas.fetch_quota import FetchQuota
from ottla.server.quotas.metered_steps import MeteredSteps
from ottla.server.quotas.throttle_counts import ThrottleCounts
from ottla.server.quotas.throttled_client import ThrottledClient
from ottla.wire.message import Request, Response

T = TypeVar("T")


class ClientQuotas:
    def __init__(self, runtime: Runtime, settings: Config) -> None:
        self.active = False  # whether there is a quota of a user or client id
        self.times_requests = False  # whether one of them is on the time of requests
        self.throttles = ThrottleCounts()
        self._runtime = runtime
        window = Window(settings[QUOTA_WINDOW_NUM], settings[QUOTA_WINDOW_SIZE_SECONDS] * 1000)
        self._produced = ClientRates(PRODUCER_BYTE_RATE, window)
        self._fetched = ClientRates(CONSUMER_BYTE_RATE, window)
        self._time = ClientRates(REQUEST_PERCENTAGE, window, longest_ms=window.sample_ms)
        self._mutations = ClientLimits({}, CONTROLLER_MUTATION_RATE)
        of_controller = Window(
            settings[CONTROLLER_QUOTA_WINDOW_NUM], settings[CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS] * 1000
        )
        self._buckets: Sensors[RateOwner, TokenBucket] = Sensors(partial(TokenBucket, of_controller))

    def sorted(self, quotas: Quotas) -> Callable[[], None]:
        """Sort quotas, perhaps in a worker; return what applies all of them at once, on the loop."""
        kinds = (self._produced, self._fetched, self._time)
        limits = [rates.limits_in(quotas) for rates in kinds]
        mutations = ClientLimits(quotas, CONTROLLER_MUTATION_RATE)

        def apply() -> None:
            for rates, own in zip(kinds, limits, strict=True):
                rates.use(own)
            self._mutations = mutations
            self.times_requests = bool(self._time)
            self.active = bool(self._produced or self._fetched or self._time or self._mutations)

        return apply

    # --- requests

    def begin(self, client: ThrottledClient, request: Request[Response], size_bytes: int) -> Charge | None:
        """Return the account of a request that is about to be handled; None if it is never throttled."""
        if is_exempt(request, client):
            return None
        return Charge(
            client, request, size_bytes, self._runtime, self._produced, self._fetched, self._time, self.throttles
        )

    def fetching(self, client: ThrottledClient) -> FetchQuota:
        """Return the quota for one fetch of a consumer."""
        now_ms = self._runtime.steady_ms
        return FetchQuota(client.principal.name, client.client_id, now_ms, self._fetched, self._time)

    def mutating(self, client: ThrottledClient, *, strict: bool) -> PartitionQuota | None:
        """Return the quota for one request that creates or deletes partitions; None if the client has none."""
        found = self._mutations.find(client.principal.name, client.client_id)
        if found is None:
            return None
        owner, limit = found
        now_ms = self._runtime.steady_ms
        return PartitionQuota(self._buckets.of(owner, now_ms()), limit, now_ms, strict=strict)

    # --- time that is not spent in a handler

    def timed(self, client: ThrottledClient, work: Callable[[], None]) -> None:
        """Do `work` for a client and count its time."""
        clock_s = self._runtime.clock_s
        begun_s = clock_s()
        work()
        self._spent(client.principal.name, client.client_id, clock_s() - begun_s)

    def metered(self, client: ThrottledClient, work: Awaitable[T]) -> Awaitable[T]:
        """Return `work` for a client, with its time on the loop counted."""
        if not self.times_requests:
            return work
        return MeteredSteps(work, self._runtime.clock_s, partial(self._spent, client.principal.name, client.client_id))

    def _spent(self, user: str, client_id: str, seconds: float) -> None:
        self._time.record(user, client_id, seconds * 100, self._runtime.steady_ms())
