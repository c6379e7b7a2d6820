"""FetchQuota: the quotas for one fetch of a consumer, asked when its records are found."""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.limits import INT32_MAX
from ottla.security.quotas.client_rates import ClientRates


class FetchQuota:
    __slots__ = ("_client_id", "_fetched", "_now_ms", "_time", "_user", "max_bytes")

    def __init__(
        self, user: str, client_id: str, now_ms: Callable[[], int], fetched: ClientRates, time: ClientRates
    ) -> None:
        self._user = user
        self._client_id = client_id
        self._now_ms = now_ms
        self._fetched = fetched
        self._time = time
        # An answer with more bytes would be throttled in any case.
        self.max_bytes = INT32_MAX if (most := fetched.most_at_once(user, client_id)) is None else int(most)

    def throttle_ms(self, size_bytes: int) -> int:
        """Count an answer of this size and return 0; or return how long the client has to wait, if it is over its quota
        and must get an answer without records instead.
        """
        user, client_id, now_ms = self._user, self._client_id, self._now_ms()
        self._fetched.record(user, client_id, size_bytes, now_ms)
        throttle_ms = max(
            self._fetched.throttle_ms(user, client_id, now_ms), self._time.throttle_ms(user, client_id, now_ms)
        )
        if throttle_ms:
            self._fetched.record(user, client_id, -size_bytes, now_ms)
        return throttle_ms
