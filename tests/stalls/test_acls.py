"""Very many ACLs: nobody waits while they are created, listed, matched, taken from a snapshot or asked about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of
from tests.support.requests.acls import GUARDED, MATCH, creation, described, filter_of

from ottla.cluster.entities import PartitionState, Topic
from ottla.cluster.journal import Item
from ottla.cluster.snapshot import snapshot
from ottla.model.ids import LeaderEpoch, PartitionEpoch
from ottla.model.limits import ACLS_PER_REQUEST_MAX
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest
from ottla.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest

MANY = ACLS_PER_REQUEST_MAX
VERSION = 3


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    with MeasuredNode(tmp_path_factory.mktemp("node"), dict(GUARDED)) as node:
        yield node


def create(node: MeasuredNode, prefix: str) -> None:
    creations = [creation(f"{prefix}-{number}", principal=f"User:{number % 100}") for number in range(MANY)]
    with node.connect() as connection:
        answer = connection.call(CreateAclsRequest(creations=creations), VERSION)
    assert {each.error_code for each in answer.results} == {0} and len(answer.results) == MANY


def test_creating_and_deleting_as_many_as_one_request_may(node: MeasuredNode) -> None:
    prefixes = iter("abcdefgh")

    def make() -> None:
        create(node, next(prefixes))

    worst = best_of(lambda: node.cost(make))
    assert worst.cpu_ms <= BUDGET_MS, worst

    def remove() -> None:
        with node.connect() as connection:
            # One filter for each hundredth of what one round created, and one for all that is left of it.
            filters = [filter_of(principal_filter=f"User:{number}") for number in range(33)]
            answer = connection.call(DeleteAclsRequest(filters=filters), VERSION)
            assert {each.error_code for each in answer.filter_results} == {0}
            connection.call(DeleteAclsRequest(filters=[filter_of()]), VERSION)

    worst = best_of(lambda: node.cost(remove), times=1)
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_many_filters_over_many_acls(node: MeasuredNode) -> None:
    create(node, "filtered")
    wanted = {"resource_name_filter": "never", "pattern_type_filter": MATCH}

    def remove() -> None:
        with node.connect() as connection:
            answer = connection.call(DeleteAclsRequest(filters=[filter_of(**wanted)] * 50), VERSION)
            assert [each.matching_acls for each in answer.filter_results] == [[]] * 50

    worst = best_of(lambda: node.cost(remove))
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_listing_them_all(node: MeasuredNode) -> None:
    create(node, "listed")

    def list_all() -> None:
        with node.connect() as connection:
            assert len(connection.call(described(), VERSION).resources) >= MANY

    worst = best_of(lambda: node.cost(list_all))
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_a_snapshot_with_them(node: MeasuredNode) -> None:
    create(node, "kept")
    host = node.node.metadata
    items = [Item(at, 1, 0, entry) for at, entry in enumerate(snapshot(host.state.copy()))]

    def load() -> None:
        steps = host.loading_snapshot(items, host.end_offset, host.last_epoch)
        asyncio.run_coroutine_threadsafe(node.node.runtime.slices.finish(steps), node.loop).result(120)

    worst = best_of(lambda: node.cost(load))
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_pages_of_very_many_topics(node: MeasuredNode) -> None:
    """All that there are, in their order: the client is asked about only as many as its page needs."""
    state, names = node.node.metadata.state, [f"many-{number}" for number in range(100_000)]
    partition = PartitionState(0, (1,), (1,), 1, LeaderEpoch(0), PartitionEpoch(0))
    topics = {name: Topic(name, number.to_bytes(16), [partition]) for number, name in enumerate(names)}
    pages: list[list[str]] = []

    def describe() -> None:
        request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2_000, cursor=None)
        with node.connect() as connection:
            answer: Any = connection.call(request, 0)
        pages.append([each.name for each in answer.topics])

    node.call(lambda: state.topics.update(topics))
    try:
        worst = best_of(lambda: node.cost(describe))
    finally:
        node.call(lambda: [state.topics.pop(name) for name in names])
    assert pages[0] == sorted(names)[:2_000]
    assert worst.cpu_ms <= BUDGET_MS, worst
