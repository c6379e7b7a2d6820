"""The first use of many partitions opens them: a bounded number at a time, whoever asks.

Only the first request finds them closed, so it is measured once, on a topic of its own per try.
"""

from collections.abc import Callable, Iterator

import pytest
from tests.server.talk import FETCH_VERSION, PRODUCE_VERSION, create, fetch_request, produce_request
from tests.stalls.measure import BUDGET_MS, Callback, MeasuredNode, best_of

from ottla.wire.message import Request

PARTITIONS = 900


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    with MeasuredNode(tmp_path_factory.mktemp("node")) as node:
        yield node


def fetch(topic: str) -> tuple[Request, int]:
    return fetch_request({(topic, index): 0 for index in range(PARTITIONS)}), FETCH_VERSION


def produce(topic: str) -> tuple[Request, int]:
    return produce_request({(topic, index): [b"x"] for index in range(PARTITIONS)}), PRODUCE_VERSION


@pytest.mark.parametrize("ask", [fetch, produce])
def test_many_partitions_that_were_never_used(node: MeasuredNode, ask: Callable[[str], tuple[Request, int]]) -> None:
    topics = iter(range(10))

    def cold() -> Callback:
        topic = f"{ask.__name__}-{next(topics)}"
        with node.connect() as connection:
            create(connection, topic, PARTITIONS)
            return node.cost(lambda: connection.call(*ask(topic)))

    worst = best_of(cold)
    assert worst.cpu_ms <= BUDGET_MS, worst
