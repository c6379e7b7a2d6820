"""Tables of measured owners are bounded, and quotas on changes of topics refuse or only slow down."""

from __future__ import annotations

import pytest

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.quotas.client_rates import ClientRates
from ottla.security.quotas.mutations import PartitionQuota
from ottla.security.quotas.rates import Window
from ottla.security.quotas.sensors import Sensors
from ottla.security.quotas.token_bucket import TokenBucket

WINDOW = Window(11, 1000)


def test_a_full_table_forgets_whoever_was_not_seen_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "QUOTA_SENSORS_MAX", 3)
    sensors: Sensors[str, list[int]] = Sensors(list)
    kept = sensors.of("a", 0)
    for at, name in enumerate("bcad", start=1):
        sensors.of(name, at)
    assert len(sensors) == 3
    assert sensors.of("a", 9) is kept  # used after b
    assert sensors.of("b", 9) == []


def test_an_idle_owner_is_forgotten() -> None:
    sensors: Sensors[str, list[int]] = Sensors(list)
    old = sensors.of("a", 0)
    sensors.of("b", limits.QUOTA_SENSOR_IDLE_MS)
    assert len(sensors) == 1
    assert sensors.of("a", limits.QUOTA_SENSOR_IDLE_MS) is not old


def test_a_client_without_a_quota_is_not_measured() -> None:
    rates = ClientRates("producer_byte_rate", WINDOW)
    assert not rates
    rates.record("u", "c", 1 << 40, 0)
    assert rates.throttle_ms("u", "c", 0) == 0
    rates.use(rates.limits_in({(("client-id", "other"),): {"producer_byte_rate": 1.0}}))
    rates.record("u", "c", 1 << 40, 0)
    assert rates.throttle_ms("u", "c", 0) == 0
    assert rates.most_at_once("u", "c") is None
    assert rates.most_at_once("u", "other") == 10.0


def test_users_of_a_default_have_a_rate_each_and_clients_of_a_user_share_one() -> None:
    rates = ClientRates("producer_byte_rate", WINDOW)
    rates.use(rates.limits_in({(("user", None),): {"producer_byte_rate": 10.0}}))
    rates.record("u", "c", 200, 0)
    assert rates.throttle_ms("u", "d", 0) == 10_000
    assert rates.throttle_ms("v", "c", 0) == 0


def test_the_longest_wait_is_bounded() -> None:
    rates = ClientRates("request_percentage", WINDOW, longest_ms=1000)
    rates.use(rates.limits_in({(("user", "u"),): {"request_percentage": 1.0}}))
    rates.record("u", "", 100, 0)
    assert rates.throttle_ms("u", "", 0) == 1000


class Clock:
    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def test_a_strict_quota_refuses_only_after_it_was_exceeded() -> None:
    bucket, clock = TokenBucket(WINDOW), Clock()
    first = PartitionQuota(bucket, 2.0, clock, strict=True)
    first.take(30)  # the bucket had 22
    assert first.throttle_ms() == 0
    with pytest.raises(ApiError) as refused:
        first.take(1)
    assert refused.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert first.throttle_ms() == 4000
    clock.now_ms += 1500
    assert first.throttle_ms() == 2500  # it was waiting for its answer meanwhile
    clock.now_ms += 2500
    PartitionQuota(bucket, 2.0, clock, strict=True).take(1)


def test_a_permissive_quota_slows_down() -> None:
    bucket, clock = TokenBucket(WINDOW), Clock()
    allowance = PartitionQuota(bucket, 2.0, clock, strict=False)
    allowance.take(22)
    assert allowance.throttle_ms() == 0
    allowance.take(4)
    assert allowance.throttle_ms() == 2000


def test_a_decision_that_is_made_again_counts_once() -> None:
    bucket, clock = TokenBucket(WINDOW), Clock()
    allowance = PartitionQuota(bucket, 2.0, clock, strict=True)
    for _ in range(3):
        allowance.begin()
        allowance.take(12)
    assert bucket.tokens(2.0, clock.now_ms) == 10
