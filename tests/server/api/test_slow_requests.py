"""The log of slow requests, on real nodes: who asked for what, and where the time went."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.talk import FETCH_VERSION, fetch_request, produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker

LOGGER = "ottla.server.api.slow_requests"
LINE = re.compile(
    r"slow request: (\w+) version \d+ of client '(.*)', User:ANONYMOUS at 127\.0\.0\.1, on listener PLAINTEXT "
    r"took (\d+) ms: local (\d+), remote (\d+)"
)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, int, int, int]]:
    lines = [each.getMessage() for each in caplog.records if each.name == LOGGER]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    return [(each[1], each[2], int(each[3]), int(each[4]), int(each[5])) for each in found if each is not None]


@pytest.fixture
def patient(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[EmbeddedBroker]:
    caplog.set_level("INFO", LOGGER)
    with EmbeddedBroker(tmp_path / "data", {"ottla.slow.request.ms": 300}) as broker:
        yield broker


def test_a_request_whose_answer_waits(patient: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    with Blocking(patient.bootstrap) as client:
        client.admin.topics.create("t")
        patient.fail(api="FindCoordinator", delay="400ms", times=1)
        client.admin.groups.set_offsets("g", {("t", 0): 0})
    ((_, client_id, total, local, remote),) = [each for each in told(caplog) if each[0] == "FindCoordinator"]
    assert client_id == "ottla"
    assert total > 300 and remote > 300 and abs(total - local - remote) <= 1


def test_a_fetch_that_waits_for_records_is_not_slow(patient: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    with Blocking(patient.bootstrap) as client, RawConnection(patient.bootstrap) as connection:
        client.admin.topics.create("t")
        connection.call(fetch_request({("t", 0): 0}, min_bytes=1, max_wait_ms=500), FETCH_VERSION)
        patient.fail(api="FindCoordinator", delay="400ms", times=1)
        client.admin.groups.set_offsets("g", {("t", 0): 0})
    apis = {each[0] for each in told(caplog)}
    assert "FindCoordinator" in apis and "Fetch" not in apis


def test_a_request_that_is_answered_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", LOGGER)
    large = {"ottla.slow.request.ms": 1, "message.max.bytes": 32 << 20}
    with EmbeddedBroker(tmp_path / "data", large) as broker, RawConnection(broker.bootstrap) as connection:
        with Blocking(broker.bootstrap) as client:
            client.admin.topics.create("t")

        def slow_produces() -> list[tuple[str, str, int, int, int]]:
            assert produce(connection, "t", [bytes(16 << 20)], acks=1)[0] == 0
            return [each for each in told(caplog) if each[0] == "Produce"]

        found = until(slow_produces)
    assert found[0][2] == found[0][3] >= 1 and found[0][4] == 0


def test_it_is_off_unless_it_is_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", LOGGER)
    with EmbeddedBroker(tmp_path / "data") as broker, Blocking(broker.bootstrap) as client:
        broker.fail(api="Metadata", delay="300ms", times=1)
        client.admin.topics.create("t")
        assert broker.node is not None and not told(caplog)
