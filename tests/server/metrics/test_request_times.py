"""How the time of requests is split, and requests without errors: told after real requests of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.metrics.scraping import ON, Scrape, scraped
from tests.server.metrics.test_cluster_metrics import scrape
from tests.server.nodes import active, run, running, settings, until
from tests.server.nodes import create as create_in
from tests.server.talk import FETCH_VERSION, create, eventually, fetch_request, produce
from tests.support.requests.raw import RawConnection

from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.topics.metadata import MetadataRequest

REQUESTS = "kafka_network_requestmetrics_"
PHASES = ("requestqueuetimems", "localtimems", "remotetimems", "responsequeuetimems", "responsesendtimems")
METADATA_VERSION = 12


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "data", ON) as broker:
        yield broker


def sum_ms(found: Scrape, phase: str, request: str) -> float:
    return found(f"{REQUESTS}{phase}_sum", request=request)


def test_requests_without_errors_are_counted(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        for _ in range(3):
            assert produce(connection, "t", [b"x"])[0] == 0
        for _ in range(2):
            assert produce(connection, "t", [b"x"], index=7)[0] == 3
        connection.call(fetch_request({("t", 0): 3}, max_wait_ms=1), FETCH_VERSION)  # its answer waits
        connection.call(fetch_request({("t", 0): 100, ("t", 5): 0}), FETCH_VERSION)  # two errors in one answer
    found = scraped(broker)
    assert found(f"{REQUESTS}errors_total", request="Produce", error="NONE") == 3
    assert found(f"{REQUESTS}errors_total", request="Produce", error="UNKNOWN_TOPIC_OR_PARTITION") == 2
    assert found(f"{REQUESTS}errors_total", request="Fetch", error="NONE") == 1
    assert found(f"{REQUESTS}errors_total", request="CreateTopics", error="NONE") == 1


def test_each_request_has_all_times(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        for _ in range(3):
            assert produce(connection, "t", [b"x"])[0] == 0
    found = scraped(broker)
    for phase in (*PHASES, "totaltimems"):
        assert found(f"{REQUESTS}{phase}_count", request="Produce") == 3
    assert found(f"{REQUESTS}remotetimems", request="Produce", quantile="0.99") == 0


def test_waiting_for_records_is_remote_time(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        connection.call(fetch_request({("t", 0): 0}, max_wait_ms=100), FETCH_VERSION)
    found = scraped(broker)
    assert sum_ms(found, "remotetimems", "Fetch") >= 99
    assert sum_ms(found, "localtimems", "Fetch") < sum_ms(found, "totaltimems", "Fetch")
    assert found(f"{REQUESTS}remotetimems", request="FetchConsumer", quantile="0.50") >= 95


def test_waiting_behind_requests_that_came_before_is_queue_time(broker: EmbeddedBroker) -> None:
    """Each answer has a thousand partitions, so the last of thirty requests waits for far more than a millisecond."""
    count = 30
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "wide", 1000)
        before = scraped(broker)(f"{REQUESTS}requestqueuetimems_count", request="CreateTopics")
        frames = [request_frame(MetadataRequest(topics=None), METADATA_VERSION, at, "raw") for at in range(count)]
        connection.send(b"".join(frames))
        for _ in range(count):
            connection.receive()
    found = scraped(broker)
    assert before == 1
    assert found(f"{REQUESTS}requestqueuetimems_count", request="Metadata") == count
    assert found(f"{REQUESTS}requestqueuetimems", request="Metadata", quantile="0.999") >= 1
    assert sum_ms(found, "requestqueuetimems", "Metadata") > sum_ms(found, "localtimems", "Metadata")
    assert sum_ms(found, "requestqueuetimems", "CreateTopics") == 0


def test_an_answer_behind_one_that_waits_is_held(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        wait = request_frame(fetch_request({("t", 0): 0}, max_wait_ms=100), FETCH_VERSION, 1, "raw")
        connection.send(wait + request_frame(MetadataRequest(topics=[]), METADATA_VERSION, 2, "raw"))
        connection.receive()
        connection.receive()
    found = scraped(broker)
    assert sum_ms(found, "responsequeuetimems", "Metadata") >= 95
    assert sum_ms(found, "totaltimems", "Metadata") < 95
    assert sum_ms(found, "responsequeuetimems", "Fetch") == 0


def test_a_client_that_reads_slowly_has_send_time(broker: EmbeddedBroker) -> None:
    """The answer is larger than what the sockets hold; the client reads it after a scrape."""
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        for _ in range(20):
            assert produce(connection, "t", [b"x" * 900_000])[0] == 0
        assert sum_ms(scraped(broker), "responsesendtimems", "Produce") == 0
        fetch = fetch_request({("t", 0): 0}, max_bytes=50_000_000, partition_max_bytes=50_000_000)
        connection.send(request_frame(fetch, FETCH_VERSION, 1, "raw"))
        eventually(lambda: "FetchConsumer" in scraped(broker).labels(f"{REQUESTS}requests_total", "request"))
        assert len(connection.receive()) > 18_000_000
    found = eventually(lambda: scraped(broker), "a scrape")
    eventually(lambda: sum_ms(scraped(broker), "responsesendtimems", "Fetch") >= 1, "the time of sending")
    assert found(f"{REQUESTS}responsesendtimems_count", request="Fetch") == 1


def test_fetches_of_followers_and_consumers_are_told_apart(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3, ottla_metrics_listener="127.0.0.1:0")) as nodes:
            await create_in(active(nodes), "t", partitions=6)
            everyone = list(nodes.values())
            await until(lambda: all("t" in node.metadata.state.topics for node in everyone))
            name = f"{REQUESTS}requests_total"
            found = await scrape(active(nodes))
            assert "FetchFollower" in found.labels(name, "request")
            assert "FetchConsumer" not in found.labels(name, "request"), "nobody consumes"
            for (each, labels), value in found.samples.items():
                if each == name and dict(labels)["request"] == "FetchFollower":
                    assert found(name, request="Fetch", version=dict(labels)["version"]) == value

    run(test)
