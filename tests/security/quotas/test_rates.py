"""Measured rates and token buckets, compared with a literal copy of what Kafka does."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ottla.security.quotas.rates import SampledRate, SimpleRate, Window
from ottla.security.quotas.token_bucket import TokenBucket

WINDOW = Window(11, 1000)


@dataclass
class KafkaSample:
    begin_ms: int
    last_ms: int
    total: float = 0.0

    def reset(self, now_ms: int) -> None:
        self.begin_ms = self.last_ms = now_ms
        self.total = 0.0


@dataclass
class KafkaRate:
    """`Rate` over `SampledStat`, with its ring of samples."""

    window: Window
    samples: list[KafkaSample] = field(default_factory=list)
    current: int = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self.samples:
            self.samples.append(KafkaSample(now_ms, now_ms))
        sample = self.samples[self.current]
        if now_ms - sample.begin_ms >= self.window.sample_ms:
            self.current = (self.current + 1) % (self.window.samples + 1)
            if self.current >= len(self.samples):
                self.samples.append(KafkaSample(now_ms, now_ms))
            sample = self.samples[self.current]
            sample.reset(now_ms)
        sample.total += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> tuple[float, int]:
        for sample in self.samples:
            if now_ms - sample.last_ms >= self.window.samples * self.window.sample_ms:
                sample.reset(now_ms)
        elapsed = now_ms - min(sample.begin_ms for sample in self.samples)
        full = elapsed // self.window.sample_ms
        least = self.window.samples - 1
        if full < least:
            elapsed += (least - full) * self.window.sample_ms
        elapsed = max(elapsed, 1)
        return sum(sample.total for sample in self.samples) / (elapsed / 1000), elapsed

    def simple(self, now_ms: int) -> float:
        """As `SimpleRate` measures it."""
        rate, elapsed = self.measure(now_ms)
        return rate * elapsed / max(now_ms - min(each.begin_ms for each in self.samples), self.window.sample_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        rate, elapsed = self.measure(now_ms)
        return 0 if rate <= limit else math.floor((rate - limit) / limit * elapsed + 0.5)


EVENTS = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 1000)), min_size=1, max_size=60)


@given(st.builds(Window, st.integers(1, 12), st.sampled_from([1000, 2000])), EVENTS, st.integers(1, 500))
def test_a_rate_is_what_kafka_measures(window: Window, events: list[tuple[int, int]], limit: int) -> None:
    ours, simple, theirs = SampledRate(window), SimpleRate(window), KafkaRate(window)
    now_ms = 1_000_000
    for pause_ms, value in events:
        now_ms += pause_ms
        for rate in (ours, simple, theirs):
            rate.record(value, now_ms)
        assert math.isclose(ours.per_second(now_ms), theirs.measure(now_ms)[0], abs_tol=1e-9)
        assert math.isclose(simple.per_second(now_ms), theirs.simple(now_ms), abs_tol=1e-9)
        assert abs(ours.throttle_ms(limit, now_ms) - theirs.throttle_ms(limit, now_ms)) <= 1  # rounded floats


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), min_size=50, max_size=300))
def test_who_waits_as_told_stays_within_the_quota(events: list[tuple[int, int]]) -> None:
    """Over a long time no more than the quota is used, beside one window at the begin and one that is forgotten."""
    rate, limit = SampledRate(WINDOW), 100
    begun_ms = now_ms = 1_000_000
    total = 0
    for pause_ms, value in events:
        now_ms += pause_ms
        rate.record(value, now_ms)
        total += value
        now_ms += rate.throttle_ms(limit, now_ms)
    assert total <= limit * (now_ms - begun_ms + 2 * WINDOW.length_ms) / 1000


def test_a_new_client_may_use_the_quota_of_the_whole_window_at_once() -> None:
    rate = SampledRate(WINDOW)
    rate.record(1000, 0)
    assert rate.throttle_ms(100, 0) == 0  # 1000 in ten seconds
    rate.record(100, 0)
    assert rate.throttle_ms(100, 0) == 1000


def test_what_was_taken_back_does_not_count() -> None:
    rate = SampledRate(WINDOW)
    rate.record(1000, 0)
    rate.record(500, 10)
    rate.record(-500, 10)
    assert rate.throttle_ms(100, 10) == 0


@dataclass
class KafkaBucket:
    window: Window
    tokens: float = 0.0
    last_ms: int = 0

    def refill(self, limit: float, now_ms: int) -> float:
        burst = self.window.samples * self.window.sample_ms / 1000 * limit
        self.tokens = min(burst, self.tokens + limit * (now_ms - self.last_ms) / 1000)
        self.last_ms = now_ms
        return self.tokens

    def record(self, value: float, limit: float, now_ms: int) -> None:
        self.refill(limit, now_ms)
        burst = self.window.samples * self.window.sample_ms / 1000 * limit
        self.tokens = min(burst, self.tokens - value)


@given(EVENTS, st.integers(1, 100))
def test_a_bucket_is_kafkas(events: list[tuple[int, int]], limit: int) -> None:
    ours, theirs = TokenBucket(WINDOW), KafkaBucket(WINDOW)
    now_ms = 1_700_000_000_000
    for pause_ms, value in events:
        now_ms += pause_ms
        ours.use(value, limit, now_ms)
        theirs.record(value, limit, now_ms)
        assert math.isclose(ours.tokens(limit, now_ms), theirs.refill(limit, now_ms), abs_tol=1e-6)
        debt = -theirs.tokens
        expected = math.floor(debt / limit * 1000 + 0.5) if debt > 0 else 0
        assert abs(ours.throttle_ms(limit, now_ms) - expected) <= 1


def test_tiny_limits_have_long_waits() -> None:
    rate, bucket = SampledRate(WINDOW), TokenBucket(WINDOW)
    rate.record(1e6, 0)
    bucket.use(1e6, 1e-300, 0)
    assert rate.throttle_ms(1e-300, 1) == 2**31 - 1
    assert bucket.throttle_ms(1e-300, 1) == 2**31 - 1
