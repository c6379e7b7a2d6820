"""Stalls: callbacks that held up the event loop, counted and logged.

A callback that runs for long delays every client of the node. `server/loop/watchdog.py` finds such callbacks and
reports them here; metrics are read from here.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.model import limits

log = logging.getLogger(__name__)


class Stall(NamedTuple):
    """One callback that ran longer than the limit."""

    name: str  # the callback's name
    place: str  # the code it was executing when the watchdog looked
    request: str | None  # the API, version, client and connection it worked for, if it was a request
    held_ms: float  # a lower bound of the duration
    cpu_ms: float  # the CPU time; the rest was spent waiting for a disk or for a CPU

    def __str__(self) -> str:
        whose = "" if self.request is None else f", for {self.request}"
        took = f"{self.held_ms:.0f} ms ({self.cpu_ms:.0f} ms of CPU)"
        return f"the event loop was held up for {took} by {self.name}, in {self.place}{whose}"


class Stalls:
    """The stalls of one node since it started."""

    def __init__(self) -> None:
        self.count = 0
        self.held_ms = 0.0  # the sum of all stalls
        self.worst: Stall | None = None
        self.by_name: dict[str, int] = {}  # the number of stalls per callback name, for the first names only
        self._untold = 0
        self._told_at_s: float | None = None

    def add(self, stall: Stall, now_s: float) -> None:
        self.count += 1
        self.held_ms += stall.held_ms
        if self.worst is None or stall.held_ms > self.worst.held_ms:
            self.worst = stall
        if stall.name in self.by_name or len(self.by_name) < limits.STALL_NAMES_MAX:
            self.by_name[stall.name] = self.by_name.get(stall.name, 0) + 1
        self._tell(stall, now_s)

    def _tell(self, stall: Stall, now_s: float) -> None:
        """Log the stall, at most once per interval, so that a node that is always slow does not flood its log."""
        if self._told_at_s is not None and now_s - self._told_at_s < limits.STALL_LOG_INTERVAL_MS / 1000:
            self._untold += 1
            return
        others = f"; {self._untold} stalls before it were not logged" if self._untold else ""
        self._told_at_s, self._untold = now_s, 0
        log.warning("%s%s", stall, others)
