"""Fetch: neither a crowd that waits for a partition nor a request that names very many holds up the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import FETCH_VERSION, Pipeline, create, eventually, fetch_request, produce
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of

from ottla.model import limits

LONG_MS = 600_000
CONNECTIONS = 150
MANY = 120_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    data: Path = tmp_path_factory.mktemp("node")
    with MeasuredNode(data) as started:
        yield started


def test_an_append_to_a_partition_that_a_crowd_waits_for(node: MeasuredNode) -> None:
    """Each connection has sent as many fetches as it may, and none of them has enough yet."""
    waiting = fetch_request({("crowd", 0): 0}, max_wait_ms=LONG_MS, min_bytes=limits.INT32_MAX)
    with ExitStack() as stack, node.connect() as connection:
        create(connection, "crowd")
        for _ in range(CONNECTIONS):
            pipe = stack.enter_context(Pipeline(node.bootstrap))
            for _ in range(limits.IN_FLIGHT_PER_CONNECTION_MAX):
                pipe.send(waiting, FETCH_VERSION)
        eventually(lambda: node.node.storage.waiters.count >= CONNECTIONS, "all wait")
        assert best_of(lambda: node.cost(lambda: produce(connection, "crowd", [b"x"]))).cpu_ms <= BUDGET_MS


def test_a_fetch_of_very_many_partitions(node: MeasuredNode) -> None:
    """It wants a session, and its topic is not there."""
    ask = fetch_request({("nope", index): 0 for index in range(MANY)}, session=(0, 0))
    with node.connect() as connection:

        def fetch() -> None:
            answer: Any = connection.call(ask, FETCH_VERSION)
            assert answer.session_id == 0, "too large for one"
            assert [len(topic.partitions) for topic in answer.responses] == [MANY]

        assert best_of(lambda: node.cost(fetch)).cpu_ms <= BUDGET_MS
    assert node.node.rooms.fetches is not None and len(node.node.rooms.fetches.sessions) == 0
