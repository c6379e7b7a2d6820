"""Subscriptions: which metrics are asked of which clients, and how often.

Patterns of clients are Java's regular expressions, which admins write and whose texts clients choose. They run on an
engine that takes bounded work (`security/java_regex`): what that refuses, as back-references, is refused here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.model import limits
from ottla.model.client_metrics_settings import CLIENT_METRICS_SETTINGS, INTERVAL_MS, MATCH, METRICS
from ottla.model.config import Config
from ottla.model.config_checks import check_client_metrics_config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import uuid_text
from ottla.records.crc import crc32c
from ottla.security.java_regex.pattern import JavaPattern
from ottla.security.java_regex.program import MatchingWork, TooMuchWork
from ottla.security.java_regex.syntax import InvalidRule

ALL = "*"
_INTERVAL_MS = Config({}, CLIENT_METRICS_SETTINGS)[INTERVAL_MS]  # of a client without a subscription
_INT32 = 1 << 31


class TelemetryClient(NamedTuple):
    """What is known of a client when it asks for the first time. The fields are the selectors of subscriptions."""

    client_instance_id: str
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


_SELECTORS = frozenset(TelemetryClient._fields)


class MetricsSubscription(NamedTuple):
    metrics: tuple[str, ...]
    interval_ms: int
    patterns: tuple[tuple[str, JavaPattern], ...]  # selectors; all must match

    def matches(self, client: TelemetryClient, work: MatchingWork) -> bool:
        """Raise TooMuchWork."""
        return all(pattern.matches(getattr(client, selector), work) for selector, pattern in self.patterns)


class WantedMetrics(NamedTuple):
    """What one client instance is asked for."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int


def check_subscription(name: str, new: Mapping[str, str]) -> None:
    """Raise INVALID_REQUEST or INVALID_CONFIG unless a subscription may have the values `new`."""
    check_client_metrics_config(name, new)
    _patterns(Config(new, CLIENT_METRICS_SETTINGS)[MATCH])


def subscription_of(values: Mapping[str, str]) -> MetricsSubscription:
    """Return the subscription with these settings of its own. Raises INVALID_CONFIG for what only Kafka can use."""
    config = Config(values, CLIENT_METRICS_SETTINGS)
    return MetricsSubscription(tuple(config[METRICS]), config[INTERVAL_MS], _patterns(config[MATCH]))


def subscribe(
    client: TelemetryClient, instance_id: bytes, subscriptions: Iterable[MetricsSubscription]
) -> tuple[WantedMetrics, bool]:
    """Return what the client is asked for, and whether all subscriptions were matched: the work is bounded."""
    names: dict[str, None] = {}
    interval_ms = _INTERVAL_MS
    work, is_complete = MatchingWork(limits.TELEMETRY_MATCHING_WORK_MAX), True
    for each in subscriptions:
        try:
            if not each.matches(client, work):
                continue
        except TooMuchWork:
            is_complete = False
            break
        interval_ms = min(interval_ms, each.interval_ms)
        if ALL not in names:
            names.update(dict.fromkeys(each.metrics))
            if ALL in names or len(names) > limits.TELEMETRY_NAMES_MAX:
                names = {ALL: None}
    metrics = tuple(sorted(names))
    return WantedMetrics(_id_of(metrics, interval_ms, instance_id), metrics, interval_ms), is_complete


def _id_of(metrics: Sequence[str], interval_ms: int, instance_id: bytes) -> int:
    """Return an id that is another one for other metrics, another interval or another instance.

    Every node finds the same one, so that a client may push to another node than the one that it asked.
    """
    found = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    mixed = int.from_bytes(instance_id[:8], "big") ^ int.from_bytes(instance_id[8:], "big")
    found ^= (mixed >> 32) ^ (mixed & 0xFFFF_FFFF)
    return found - 2 * _INT32 if found >= _INT32 else found


def _patterns(items: Iterable[str]) -> tuple[tuple[str, JavaPattern], ...]:
    """Return the pattern of each selector. The last one counts, as with Kafka."""
    found: dict[str, JavaPattern] = {}
    left = limits.TELEMETRY_PATTERN_STEPS_MAX
    for item in items:
        parts = item.split("=")
        while parts and not parts[-1]:  # Java's `split` leaves empty parts at the end out
            del parts[-1]
        if len(parts) != 2 or (selector := parts[0].strip()) not in _SELECTORS:
            raise _illegal(item)
        try:
            pattern = JavaPattern(parts[1].strip(), left)
        except InvalidRule:
            raise _illegal(item) from None
        left -= pattern.steps
        found[selector] = pattern
    return tuple(found.items())


def _illegal(item: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {item}")


def client_of(
    instance_id: bytes, client_id: str, software: tuple[str, str], address: tuple[str, int]
) -> TelemetryClient:
    """`software` is the name and the version that the client told; `address` is where it connected from. Texts of the
    client are cut: they are kept, matched and told by their first characters.
    """
    name, version, told_id = (each[: limits.TELEMETRY_CLIENT_CHARS_MAX] for each in (*software, client_id))
    return TelemetryClient(uuid_text(instance_id), told_id, name, version, address[0], str(address[1]))
