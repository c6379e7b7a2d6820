"""A scrape of a node with 10,000 open partitions, and with many topics: it is done in slices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.metrics.scraping import Scrape, get
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.support.waiting import until

from ottla.model.limits import INT32_MAX
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

PARTITIONS = 9_000
TOPICS = 1_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    settings = {"ottla.metrics.listener": "127.0.0.1:0", "max.request.partition.size.limit": INT32_MAX}
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as node:
        with node.connect() as connection:
            for counts in ({"big": PARTITIONS}, {f"t{number}": 1 for number in range(TOPICS)}):
                topics = [
                    CreateTopicsRequest.CreatableTopic(
                        name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
                    )
                    for name, count in counts.items()
                ]
                answer = connection.call(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
                assert not any(each.error_code for each in answer.topics)
        until(lambda: node.call(lambda: node.node.partitions.open_some(200)), lambda left: left == 0)
        yield node


def test_ten_thousand_partitions(node: MeasuredNode) -> None:
    bodies: list[str] = []

    def cost() -> Callback:
        return node.cost(lambda: bodies.append(get(node.node.metrics_address, "/metrics").body))

    worst = best_of(cost)
    assert worst.cpu_ms <= BUDGET_MS, worst
    found = Scrape(bodies[-1])
    assert found("kafka_server_replicamanager_leadercount") == PARTITIONS + TOPICS
    told = found.labels("kafka_log_log_numlogsegments", "topic")
    segments = [found("kafka_log_log_numlogsegments", topic=topic) for topic in told]
    assert (len(told), sum(segments)) == (101, PARTITIONS + TOPICS)
