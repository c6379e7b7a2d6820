"""ClientInstance: what a node remembers of one client instance, and Kafka's rules for its requests.

A client may ask again, or push again, when its push interval is over. The first push after an answer may come at any
time, because clients begin at a random moment of the interval. Who was told that something is out of date may ask at
once.
"""

from __future__ import annotations

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.compress import Codec
from ottla.telemetry.subscription import TelemetryClient, WantedMetrics

_NEVER = -(1 << 62)
_CODECS = frozenset(map(int, Codec))
# What may be the reason to ask again at once.
_OUT_OF_DATE = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class ClientInstance:
    """`version` is that of the subscriptions from which `subscribed` was found."""

    __slots__ = (
        "_asked_ms",
        "_error",
        "_is_terminating",
        "_pushed_ms",
        "client",
        "expires_ms",
        "subscribed",
        "version",
    )

    def __init__(self, client: TelemetryClient, subscribed: WantedMetrics, version: int) -> None:
        self.client = client
        self.subscribed = subscribed
        self.version = version
        self.expires_ms = 0
        self._asked_ms = self._pushed_ms = _NEVER
        self._error = ErrorCode.NONE  # of the last push
        self._is_terminating = False

    @property
    def idle_ms(self) -> int:
        """After this time without a request the instance is forgotten."""
        return max(limits.TELEMETRY_IDLE_MS, 3 * self.subscribed.interval_ms)

    def ask(self, now_ms: int) -> ErrorCode:
        """Return NONE if the client may be told its subscription now."""
        if now_ms - max(self._asked_ms, self._pushed_ms) >= self.subscribed.interval_ms:
            self._asked_ms = now_ms
        elif self._error not in _OUT_OF_DATE:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        self._error = ErrorCode.NONE
        return ErrorCode.NONE

    def push(
        self, subscription_id: int, compression_type: int, size: int, size_max: int, now_ms: int, *, is_last: bool
    ) -> ErrorCode:
        """Return NONE if a push of `size` bytes is accepted; `is_last` says that the client terminates."""
        self._error = self._check(subscription_id, compression_type, size, size_max, now_ms, is_last)
        self._is_terminating = is_last
        return self._error

    def _check(
        self, subscription_id: int, compression_type: int, size: int, size_max: int, now_ms: int, is_last: bool
    ) -> ErrorCode:
        if self._is_terminating:
            return ErrorCode.INVALID_REQUEST
        is_in_time = self._asked_ms > self._pushed_ms or now_ms - self._pushed_ms >= self.subscribed.interval_ms
        if is_in_time:
            self._pushed_ms = now_ms
        elif not is_last:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if subscription_id != self.subscribed.id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if compression_type not in _CODECS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.TELEMETRY_TOO_LARGE if size > size_max else ErrorCode.NONE

    def failed(self, error: ErrorCode) -> None:
        """Note that an accepted push could not be used."""
        self._error = error
