"""Subscriptions: how they are checked, whom they match, and what a client is asked for."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.telemetry.subscription import (
    MetricsSubscription,
    TelemetryClient,
    WantedMetrics,
    check_subscription,
    client_of,
    subscribe,
    subscription_of,
)

ID = UUID("11111111-2222-4333-8444-555555555555").bytes
CLIENT = client_of(ID, "app-1", ("apache-kafka-java", "4.3.1"), ("10.1.2.3", 40123))


def subscribed(*subscriptions: dict[str, str], client: TelemetryClient = CLIENT) -> WantedMetrics:
    found, is_complete = subscribe(client, ID, map(subscription_of, subscriptions))
    assert is_complete
    return found


@pytest.mark.parametrize(
    ("name", "values", "code", "message"),
    [
        ("", {}, ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        ("cm", {"nope": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nope"),
        (
            "cm",
            {"interval.ms": "5", "match": "nope=a"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            "cm",
            {"interval.ms": "x"},
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration interval.ms: Not a number of type INT",
        ),
        *(
            ("cm", {"match": match}, ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {match}")
            for match in (
                "client_id=[a",
                "nope=a",
                "client_id=",
                "client_id",
                "=a",
                "client_id=a=b",
                "client_id==a",
                r"client_id=(a)\1",
                "client_id=(?=a)a",
                "client_id=(a{1000}){10}",
            )
        ),
    ],
)
def test_what_is_refused(name: str, values: dict[str, str], code: ErrorCode, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_subscription(name, values)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize("match", ["", "client_id = a.*", "client_id=a=", "client_id=a,client_id=b", "client_id=a||b"])
def test_what_is_accepted(match: str) -> None:
    check_subscription("cm", {"interval.ms": "1000", "metrics": "*", "match": match})


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("", True),
        ("client_id=app-1", True),
        ("client_id=app", False),
        ("client_id=app.*", True),
        ("client_id=APP.*", False),
        ("client_id=(?i)APP.*", True),
        ("client_id=.*,client_software_name=librdkafka", False),
        ("client_id=.*,client_software_name=apache-.*,client_software_version=4[.].*", True),
        (r"client_source_address=10\.\d+\.2\.3", True),
        ("client_source_port=4[0-9]*", True),
        ("client_instance_id=EREREVIiREQzhERVVVVVVQ", False),
        ("client_instance_id=ERERESIiQzOERFVVVVVVVQ", True),
        ("client_id=app-1,client_id=other", False),  # the last one counts
    ],
)
def test_whom_a_subscription_matches(match: str, matches: bool) -> None:
    assert subscribed({"metrics": "m", "match": match}).metrics == (("m",) if matches else ())


def test_without_a_subscription_nothing_is_asked() -> None:
    found = subscribed()
    assert (found.metrics, found.interval_ms) == ((), 300_000)


def test_several_subscriptions_are_one() -> None:
    found = subscribed(
        {"metrics": "b,c", "interval.ms": "7000"},
        {"metrics": "a,b", "interval.ms": "5000"},
        {"metrics": "z", "interval.ms": "100", "match": "client_id=other"},
    )
    assert (found.metrics, found.interval_ms) == (("a", "b", "c"), 5000)
    assert subscribed({"metrics": "a"}, {"metrics": "*,b"}, {"metrics": "c"}).metrics == ("*",)


def test_an_id_says_what_is_asked_of_whom() -> None:
    found = subscribed({"metrics": "*", "interval.ms": "1000"})
    assert found.id == -794_173_285, "a real Kafka's"
    assert subscribed({"metrics": "*", "interval.ms": "1000"}, {"metrics": "a"}) == found
    assert subscribed({"metrics": "*", "interval.ms": "1001"}).id != found.id
    assert subscribed({"metrics": "a", "interval.ms": "1000"}).id != found.id
    other, _ = subscribe(CLIENT, bytes(16), [subscription_of({"metrics": "*", "interval.ms": "1000"})])
    assert other.id != found.id


@given(st.binary(min_size=16, max_size=16))
def test_an_id_is_a_number_of_32_bits(instance_id: bytes) -> None:
    found, _ = subscribe(CLIENT, instance_id, [])
    assert -(2**31) <= found.id < 2**31


def test_very_many_metrics_are_all_metrics() -> None:
    names = ",".join(f"m{number}" for number in range(limits.TELEMETRY_NAMES_MAX // 2 + 1))
    assert len(subscribed({"metrics": names}).metrics) == limits.TELEMETRY_NAMES_MAX // 2 + 1
    assert subscribed({"metrics": names}, {"metrics": names.replace("m", "n")}).metrics == ("*",)


def test_matching_is_bounded() -> None:
    slow = subscription_of({"metrics": "slow", "match": "client_id=" + "(.*b|.*c|.*d)" * 20})
    client = CLIENT._replace(client_id="a" * 32_767)
    found, is_complete = subscribe(client, ID, [MetricsSubscription(("first",), 1_000, ()), slow, slow])
    assert (found.metrics, found.interval_ms, is_complete) == (("first",), 1_000, False)


def test_long_texts_of_clients_are_cut() -> None:
    client = client_of(ID, "i" * 32_000, ("n" * 32_000, "v" * 32_000), ("10.1.2.3", 1))
    assert [len(each) for each in client[1:4]] == [limits.TELEMETRY_CLIENT_CHARS_MAX] * 3
