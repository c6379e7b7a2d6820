"""Quotas on changes of topics (`controller_mutation_rate`, KIP-599): created and deleted partitions per second.

A request of a recent version is refused with THROTTLING_QUOTA_EXCEEDED while the bucket is in debt (strict). A client
that does not know this error gets what it asks for, and has to wait afterwards (permissive).
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.errors import ApiError, ErrorCode
from ottla.security.quotas.token_bucket import TokenBucket


class PartitionQuota:
    """Counts the partitions that one request creates or deletes, for a client that has such a quota."""

    def __init__(self, bucket: TokenBucket, limit: float, now_ms: Callable[[], int], *, strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self._now_ms = now_ms
        self._strict = strict
        self._taken = 0
        self._free_ms = 0  # when the client may go on

    def begin(self) -> None:
        """Begin to decide, perhaps once more: what an earlier attempt took is given back."""
        if self._taken:
            self._bucket.use(-self._taken, self._limit, self._now_ms())
            self._taken = 0

    def take(self, partitions: int) -> None:
        """Count `partitions`; raise THROTTLING_QUOTA_EXCEEDED if they are refused."""
        if self._strict and self._is_exceeded():
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._bucket.use(partitions, self._limit, self._now_ms())
        self._taken += partitions
        if not self._strict:
            self._is_exceeded()

    def _is_exceeded(self) -> bool:
        now_ms = self._now_ms()
        throttle_ms = self._bucket.throttle_ms(self._limit, now_ms)
        if throttle_ms:
            self._free_ms = now_ms + throttle_ms
        return throttle_ms > 0

    def throttle_ms(self) -> int:
        """Return how long the client has to wait when it is answered now."""
        return max(0, self._free_ms - self._now_ms())


def throttle_ms(quota: PartitionQuota | None) -> int:
    """Return how long a client has to wait when it is answered now; one without a quota does not wait."""
    return 0 if quota is None else quota.throttle_ms()
