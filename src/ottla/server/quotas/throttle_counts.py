"""ThrottleCounts: how long clients over a quota were told to wait, by the API of their request."""

from __future__ import annotations

from ottla.observe.metrics.histogram import RecentHistogram


class ThrottleCounts:
    def __init__(self) -> None:
        self.by_request: dict[str, RecentHistogram] = {}  # in milliseconds

    def note(self, request: str, throttle_ms: int) -> None:
        found = self.by_request.get(request)
        if found is None:
            found = self.by_request[request] = RecentHistogram()
        found.all.add(throttle_ms)

    def turn(self) -> None:
        """Begin another interval of the quantiles."""
        for histogram in self.by_request.values():
            histogram.turn()
