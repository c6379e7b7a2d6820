"""States and figures of pipelines in words."""

from __future__ import annotations

from ottla.console.pages.pipelines.desk import number_of
from ottla.console.parts.words import Mood
from ottla.spark.pipelines.status import PipelineStatus

_MOODS: dict[str, Mood] = {
    "running": "good",
    "starting": "fair",
    "restarting": "fair",
    "waiting": "fair",
    "stopping": "fair",
    "failed": "bad",
    "lost": "bad",
}
_UNKNOWN = "-"


def mood_of(status: PipelineStatus) -> Mood:
    return _MOODS.get(status.state, "plain")


def sum_of(status: PipelineStatus, name: str) -> float | None:
    """A figure over all queries; None if one does not know it."""
    values = [number_of(each, name) for each in status.queries]
    known = [each for each in values if each is not None]
    return sum(known) if known and len(known) == len(values) else None


def rate_text(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.1f}"


def lag_text(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:,.0f}"


def seconds_text(value: float | None) -> str:
    """A duration with its unit."""
    if value is None:
        return _UNKNOWN
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def since_text(at_ms: int, now_ms: int) -> str:
    """How long ago something was."""
    return "never" if at_ms <= 0 else f"{seconds_text(max(now_ms - at_ms, 0) / 1000)} ago"
