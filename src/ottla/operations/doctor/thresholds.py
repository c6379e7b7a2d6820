"""Thresholds that several checks share."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.operations.doctor.check import HealthLevel, Symptom
from ottla.operations.formats import size_text

CLOCK_OFF_S = 3600.0  # more than this is no drift: a clock was set, or is not
_FREE_SHARE_LOW, _FREE_SHARE_NONE = 0.15, 0.05


def room_symptom(what: str, free_bytes: int, total_bytes: int) -> Iterator[Symptom]:
    """A warning below 15 % free, a problem below 5 %."""
    share = free_bytes / total_bytes if total_bytes > 0 else 1.0
    if share < _FREE_SHARE_LOW:
        level = HealthLevel.PROBLEM if share < _FREE_SHARE_NONE else HealthLevel.WARNING
        yield Symptom(f"{what} has {size_text(free_bytes)} of {size_text(total_bytes)} left ({share:.0%})", level)
