"""Dashboards made for the JMX exporter of Kafka show figures of a node: a real Prometheus answers what they ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compat.metrics.public_queries import NOT_HERE, OF_CLUSTERS, QUERIES
from tests.server.metrics.scraping import ON
from tests.server.talk import FETCH_VERSION, create, fetch_request, produce
from tests.support import tools
from tests.support.processes.prometheus import Prometheus
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla import Blocking, ConsumerOptions
from ottla.observe.metrics.catalogue.areas import metrics
from ottla.testing.broker import EmbeddedBroker

NAME = re.compile(r"\b(?:kafka|process)_\w+")


def test_every_name_is_declared() -> None:
    """A query that nothing answers for ever is found here, without a Prometheus."""
    declared = {metric.name for metric in metrics()}
    for title, query in (QUERIES | OF_CLUSTERS).items():
        names = {re.sub(r"_(sum|count)\Z", "", name) if name not in declared else name for name in NAME.findall(query)}
        assert names and names <= declared, title


def test_what_is_not_here_is_not_told_by_another_name() -> None:
    declared = {metric.name for metric in metrics()}
    for beginning, reason in NOT_HERE.items():
        assert reason
        assert not [name for name in declared if name.startswith(beginning)], beginning
        for name in re.findall(r"\b(?:ottla|kafka)_\w+", reason):
            assert name in declared, f"{beginning}: {name}"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    tools.require(tools.missing_prometheus())
    with EmbeddedBroker(tmp_path / "data", ON) as broker:
        yield broker


def test_every_query_has_an_answer(broker: EmbeddedBroker, tmp_path: Path) -> None:
    assert broker.node is not None and broker.node.metrics_address is not None
    host, port = broker.node.metrics_address
    unanswered = dict(QUERIES)
    with (
        RawConnection(broker.bootstrap) as connection,
        Blocking(broker.bootstrap) as client,
        client.consumer(ConsumerOptions("g", auto_offset_reset="earliest")) as consumer,
        Prometheus(tmp_path / "prometheus", [f"{host}:{port}"]) as prometheus,
    ):
        create(connection, "t", flush_messages=1)
        produce(connection, "t", [b"x"])
        consumer.subscribe(["t"])
        next(iter(consumer))
        prometheus.until_scraped()

        def still() -> dict[str, str]:
            produce(connection, "t", [b"x"])
            produce(connection, "t", [b"x"], index=7)
            connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
            connection.call(fetch_request({("t", 0): 1 << 40}), FETCH_VERSION)
            for title, query in tuple(unanswered.items()):
                if prometheus.query(query):
                    del unanswered[title]
            return unanswered

        until(still, lambda left: not left)
        for title, expected in {
            "stable groups": 1,
            "voters": 1,
            "partitions under their minimum": 0,
            "lag of followers": 0,
            "offline partitions": 0,
        }.items():
            (found,) = prometheus.query(QUERIES[title]).values()
            assert found == expected, title
        produced = prometheus.query('kafka_server_brokertopicmetrics_totalproducerequests_total{topic="t"}')
        refused = prometheus.query('kafka_server_brokertopicmetrics_failedproducerequests_total{topic="t"}')
        assert sum(produced.values()) > sum(refused.values()) > 0, "what is refused counts in both"
        assert prometheus.query(QUERIES["states in the quorum"]) == {"current_state=leader": 1}
        assert prometheus.query(QUERIES["replicas by topic"])["topic=t"] == 1
