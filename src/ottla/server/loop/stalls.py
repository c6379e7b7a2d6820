"""Stalls: what held up the event loop, counted and logged.

One callback that runs for long holds up every client of the node. `server/loop/watchdog.py` finds such callbacks and
tells them here; whoever exports figures reads them here.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ottla.model import limits

log = logging.getLogger(__name__)


class Stall(NamedTuple):
    """One callback that ran for longer than it may."""

    name: str  # of the callback
    place: str  # where it was when somebody looked
    request: str | None  # the API, version, client and connection it worked for, if it was a request
    held_ms: float  # at least so long
    cpu_ms: float  # so long it computed; for the rest it waited: for a disk, or for its turn on a CPU

    def __str__(self) -> str:
        whose = "" if self.request is None else f", for {self.request}"
        took = f"{self.held_ms:.0f} ms ({self.cpu_ms:.0f} ms of CPU)"
        return f"the event loop was held up for {took} by {self.name}, in {self.place}{whose}"


class Stalls:
    """The stalls of one node since it started."""

    def __init__(self) -> None:
        self.count = 0
        self.held_ms = 0.0  # by all of them together
        self.worst: Stall | None = None
        self.by_name: dict[str, int] = {}  # how many; of the names met first
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
        """A node that is too slow in all it does must not write that down all the time."""
        if self._told_at_s is not None and now_s - self._told_at_s < limits.STALL_LOG_INTERVAL_MS / 1000:
            self._untold += 1
            return
        others = f"; {self._untold} stalls before it were not logged" if self._untold else ""
        self._told_at_s, self._untold = now_s, 0
        log.warning("%s%s", stall, others)
