"""Kafka's rules for the requests of a client instance, and how instances are found and forgotten."""

from __future__ import annotations

import pytest

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.telemetry.instance import ClientInstance
from ottla.telemetry.instances import ClientInstances, ConnectionInstances
from ottla.telemetry.subscription import TelemetryClient, WantedMetrics

OK, THROTTLED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
INTERVAL_MS = 1_000
CLIENT = TelemetryClient("id", "app", "java", "1", "10.0.0.1", "4000")


def made(client: TelemetryClient = CLIENT, interval_ms: int = INTERVAL_MS, version: int = 0) -> ClientInstance:
    return ClientInstance(client, WantedMetrics(7, ("*",), interval_ms), version)


class Story:
    """The requests of one instance at given times."""

    def __init__(self) -> None:
        self.instance = made()

    def ask(self, at_ms: int) -> ErrorCode:
        return self.instance.ask(at_ms)

    def push(self, at_ms: int, id: int = 7, compression: int = 0, size: int = 10, is_last: bool = False) -> ErrorCode:
        return self.instance.push(id, compression, size, 100, at_ms, is_last=is_last)


@pytest.fixture
def story() -> Story:
    return Story()


def test_the_first_push_comes_at_any_time_and_the_next_after_the_interval(story: Story) -> None:
    assert story.ask(0) == OK
    assert story.push(1) == OK
    assert story.push(2) == THROTTLED
    assert story.push(1_000) == THROTTLED
    assert story.push(1_001) == OK


def test_a_client_asks_again_after_the_interval(story: Story) -> None:
    assert story.ask(0) == OK
    assert story.ask(999) == THROTTLED
    assert story.ask(1_000) == OK
    assert story.push(1_500) == OK
    assert story.ask(2_000) == THROTTLED
    assert story.ask(2_500) == OK


def test_a_push_without_a_question(story: Story) -> None:
    assert story.push(0) == OK
    assert story.push(1) == THROTTLED


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"id": 8}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"size": 101}, ErrorCode.TELEMETRY_TOO_LARGE),
    ],
)
def test_what_is_wrong_with_a_push(story: Story, wrong: dict[str, int], error: ErrorCode) -> None:
    assert story.ask(0) == OK
    assert story.push(1, **wrong) == error
    may_ask_at_once = error != ErrorCode.TELEMETRY_TOO_LARGE
    assert story.ask(2) == (OK if may_ask_at_once else THROTTLED)
    assert story.ask(3) == THROTTLED


@pytest.mark.parametrize("compression", [0, 1, 2, 3, 4])
def test_every_codec_is_accepted(story: Story, compression: int) -> None:
    assert story.push(0, compression=compression, size=100) == OK


def test_who_terminates_may_push_at_once_and_then_no_more(story: Story) -> None:
    assert story.push(0) == OK
    assert story.push(1, is_last=True) == OK
    assert story.push(5_000) == ErrorCode.INVALID_REQUEST
    assert story.push(5_001) == OK, "as with Kafka: the last request did not terminate"


def test_a_wrong_last_push_ends_it_too(story: Story) -> None:
    assert story.push(0, id=8, is_last=True) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert story.push(1, is_last=True) == ErrorCode.INVALID_REQUEST


def test_a_push_that_could_not_be_used(story: Story) -> None:
    assert story.push(0) == OK
    story.instance.failed(ErrorCode.INVALID_RECORD)
    assert story.ask(1) == THROTTLED


def test_instances_are_found_again() -> None:
    instances = ClientInstances()
    first = instances.find(b"a", CLIENT, 0, 0, made)
    other = CLIENT._replace(client_source_port="4001")
    assert instances.find(b"a", other, 0, 10, made) is first
    renewed = instances.find(b"a", other, 1, 20, lambda client: made(client, version=1))
    assert renewed is not first
    assert renewed.client is CLIENT, "what was known first"
    assert (len(instances), b"a" in instances, b"b" in instances) == (1, True, False)
    instances.drop(b"a")
    instances.drop(b"a")
    assert len(instances) == 0


def test_instances_are_forgotten() -> None:
    instances = ClientInstances()
    instances.find(b"short", CLIENT, 0, 0, made)
    instances.find(b"long", CLIENT, 0, 0, lambda client: made(client, interval_ms=100_000))
    instances.tidy(limits.TELEMETRY_IDLE_MS - 1)
    assert len(instances) == 2
    instances.tidy(limits.TELEMETRY_IDLE_MS)
    assert (b"short" in instances, b"long" in instances) == (False, True)
    instances.find(b"long", CLIENT, 0, 200_000, made)
    instances.tidy(300_000)
    assert b"long" in instances, "it was heard of"
    instances.tidy(500_000)
    assert len(instances) == 0


def test_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TELEMETRY_INSTANCES_MAX", 2)
    instances = ClientInstances()
    for id in (b"a", b"b", b"a", b"c"):
        instances.find(id, CLIENT, 0, 0, made)
    assert (b"a" in instances, b"b" in instances, b"c" in instances) == (True, False, True)


def test_a_connection_has_a_few_and_they_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TELEMETRY_INSTANCES_PER_CONNECTION_MAX", 2)
    instances = ClientInstances()
    one, other = ConnectionInstances(instances), ConnectionInstances(instances)

    def known(connection: ConnectionInstances, *ids: bytes) -> list[bytes]:
        for id in ids:
            instances.find(id, CLIENT, 0, 0, made)
            connection.made(id)
        return [id for id in (b"a", b"b", b"c", b"x") if id in instances]

    assert known(other, b"x") == [b"x"]
    assert known(one, b"a", b"b", b"a") == [b"a", b"b", b"x"]
    assert known(one, b"c") == [b"a", b"c", b"x"], "the oldest gives way, and nobody else's"
    one()
    one()
    assert known(other) == [b"x"]
