"""Sensors: one rate or token bucket per quota owner, in a bounded table.

A client may invent any number of client ids, so a full table forgets the owner that was not measured for the longest
time. An owner that was not measured for an hour is forgotten, too, as with Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ottla.model import limits

OwnerT = TypeVar("OwnerT", bound=Hashable)
SensorT = TypeVar("SensorT")


class Sensors(Generic[OwnerT, SensorT]):
    def __init__(self, make: Callable[[], SensorT]) -> None:
        self._make = make
        self._found: dict[OwnerT, tuple[SensorT, int]] = {}  # with the time of the last use, which is also the order

    def __len__(self) -> int:
        return len(self._found)

    def of(self, owner: OwnerT, now_ms: int) -> SensorT:
        found = self._found
        known = found.pop(owner, None)
        sensor = self._make() if known is None else known[0]
        found[owner] = sensor, now_ms
        if known is None:
            self._forget(now_ms)
        return sensor

    def _forget(self, now_ms: int) -> None:
        found = self._found
        while len(found) > 1:
            first = next(iter(found))
            if len(found) <= limits.QUOTA_SENSORS_MAX and now_ms - found[first][1] < limits.QUOTA_SENSOR_IDLE_MS:
                break
            del found[first]
