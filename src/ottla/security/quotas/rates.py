"""Rates over the last few samples, measured as Kafka does: `SampledRate` is its `Rate` over `WindowedSum`, `SimpleRate`
its `SimpleRate`.

Values are summed in samples of a fixed length; a sample begins with the first value after the one before is complete.
The rate is the sum of all samples divided by the time since the oldest one began, or by all but one of the samples'
lengths if that is longer: a client that just came may use the quota of the whole window at once. A simple rate is
divided by that time, or by the length of one sample.

The time to wait, if the rate is above the quota, is the time after which the rate would be the quota again if nothing
more were counted.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

from ottla.model.limits import INT32_MAX


class Window(NamedTuple):
    """How many samples are kept, and how long each is."""

    samples: int
    sample_ms: int

    @property
    def length_ms(self) -> int:
        return self.samples * self.sample_ms


class _Sample:
    __slots__ = ("begin_ms", "last_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.begin_ms = self.last_ms = now_ms
        self.total = 0.0


class SampledRate:
    __slots__ = ("_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._samples: list[_Sample] = []  # the newest one last; one more than the window has, if it overlaps its begin

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1].begin_ms >= self._window.sample_ms:
            samples.append(_Sample(now_ms))
            if len(samples) > self._window.samples + 1:
                del samples[0]
        newest = samples[-1]
        newest.total += value
        newest.last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        return self._measure(now_ms)[0]

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long it takes until the rate is `limit` again; 0 if it is not above."""
        rate, elapsed_ms = self._measure(now_ms)
        if rate <= limit:
            return 0
        if limit <= 0:
            return INT32_MAX
        # Compared before it is rounded: with a tiny limit the quotient is infinite.
        return floor(min((rate - limit) / limit * elapsed_ms + 0.5, INT32_MAX))

    def _measure(self, now_ms: int) -> tuple[float, int]:
        """Return the rate, and the time over which it was measured."""
        samples = self._samples
        while samples and now_ms - samples[0].last_ms >= self._window.length_ms:
            del samples[0]
        elapsed_ms = max(self._measured_ms(now_ms - samples[0].begin_ms if samples else 0), 1)
        return sum(sample.total for sample in samples) * 1000 / elapsed_ms, elapsed_ms

    def _measured_ms(self, elapsed_ms: int) -> int:
        """Return the time that the sum is divided by."""
        count, sample_ms = self._window
        missing = count - 1 - elapsed_ms // sample_ms
        return elapsed_ms + missing * sample_ms if missing > 0 else elapsed_ms


class SimpleRate(SampledRate):
    """A rate of what has happened, without regard to what the window still has room for."""

    __slots__ = ()

    def _measured_ms(self, elapsed_ms: int) -> int:
        return max(elapsed_ms, self._window.sample_ms)
