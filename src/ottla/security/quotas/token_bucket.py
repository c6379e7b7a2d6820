"""TokenBucket: tokens that are used up and refilled at a steady rate, as Kafka's bucket for changes of metadata.

The bucket holds as many tokens as are refilled within the window. A single change may use more tokens than there are;
then the bucket is in debt, and nothing is allowed until it is refilled to zero.
"""

from __future__ import annotations

from math import floor

from ottla.model.limits import INT32_MAX
from ottla.security.quotas.rates import Window


class TokenBucket:
    __slots__ = ("_refilled_ms", "_tokens", "_window")

    def __init__(self, window: Window) -> None:
        """A new bucket is full."""
        self._window = window
        self._tokens = 0.0
        self._refilled_ms: int | None = None

    def tokens(self, limit: float, now_ms: int) -> float:
        """Return the tokens that there are now, if `limit` are added per second."""
        most = self._window.length_ms * limit / 1000
        if self._refilled_ms is None:
            self._tokens = most
        else:
            self._tokens = min(most, self._tokens + limit * (now_ms - self._refilled_ms) / 1000)
        self._refilled_ms = now_ms
        return self._tokens

    def use(self, tokens: float, limit: float, now_ms: int) -> None:
        self._tokens = self.tokens(limit, now_ms) - tokens

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long it takes until the bucket is out of debt; 0 if it is not in debt."""
        debt = -self.tokens(limit, now_ms)
        if debt <= 0:
            return 0
        return floor(min(debt / limit * 1000 + 0.5, INT32_MAX)) if limit > 0 else INT32_MAX
