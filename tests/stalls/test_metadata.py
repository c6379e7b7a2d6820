"""What very many partitions cost a cluster: the controller that decides, the brokers that follow, a snapshot of it all.

Nobody waits for more than a slice, neither on the node that was asked nor on any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from tests.server.talk import eventually
from tests.stalls.measuring.clusters import MeasuredCluster, measured_cluster
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of

from ottla.cluster.commands.fence import FenceBroker
from ottla.cluster.journal import Item
from ottla.cluster.snapshot import snapshot
from ottla.model.errors import ErrorCode
from ottla.model.limits import PARTITIONS_PER_REQUEST_MAX
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

MANY = PARTITIONS_PER_REQUEST_MAX
OPENED = 1_200  # more than twice what one slice follows
IN_SNAPSHOT = 50_000

_Topic = CreateTopicsRequest.CreatableTopic


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredCluster]:
    with measured_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def create(node: MeasuredNode, topic: _Topic) -> None:
    with node.connect() as connection:
        answer = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
    assert answer.topics[0].error_code == ErrorCode.NONE, answer.topics[0]


def delete(node: MeasuredNode, name: str) -> None:
    doomed = DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=bytes(16))
    with node.connect() as connection:
        answer = connection.call(DeleteTopicsRequest(topics=[doomed], timeout_ms=60_000), 6)
    assert answer.responses[0].error_code == ErrorCode.NONE


def automatic(name: str, count: int, replicas: int) -> _Topic:
    return _Topic(name=name, num_partitions=count, replication_factor=replicas, assignments=[], configs=[])


def by_hand(name: str, count: int, replicas: int = 1) -> _Topic:
    """No two neighbours alike."""
    orders = list(permutations((1, 2, 3), replicas))
    return _Topic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        configs=[],
        assignments=[
            _Topic.CreatableReplicaAssignment(partition_index=index, broker_ids=list(orders[index % len(orders)]))
            for index in range(count)
        ],
    )


@pytest.mark.parametrize("make", [lambda name: automatic(name, MANY, 1), lambda name: by_hand(name, MANY)])
def test_a_topic_comes_and_goes(cluster: MeasuredCluster, make: Any) -> None:
    names = iter("abcdef")

    def cost() -> Callback:
        name = next(names)
        coming = cluster.cost(lambda: create(cluster.other, make(name)))
        going = cluster.cost(lambda: delete(cluster.other, name))
        return max(coming, going, key=lambda each: each.cpu_ms)

    worst = best_of(cost)
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_a_topic_grows_by_hand(cluster: MeasuredCluster) -> None:
    create(cluster.other, by_hand("growing", 1))
    counts = iter(range(1 + MANY, 4 * MANY, MANY))

    def grow() -> None:
        assign = CreatePartitionsRequest.Topic.Assignment
        topic = CreatePartitionsRequest.Topic(
            name="growing",
            count=next(counts),
            assignments=[assign(broker_ids=[1 + number % 3]) for number in range(MANY)],
        )
        with cluster.other.connect() as connection:
            answer = connection.call(CreatePartitionsRequest(topics=[topic], timeout_ms=60_000, validate_only=False), 3)
        assert answer.results[0].error_code == ErrorCode.NONE, answer.results[0]

    worst = best_of(lambda: cluster.cost(grow))
    delete(cluster.other, "growing")
    assert worst.cpu_ms <= BUDGET_MS, worst


def fenced(cluster: MeasuredCluster, broker_id: int) -> None:
    """The controller takes a broker for dead; its next heartbeat brings it back."""
    controller = cluster.controller

    def fence() -> None:
        broker = controller.node.metadata.state.brokers[broker_id]
        controller.node.member.controller.submit(FenceBroker(broker_id, broker.epoch))

    controller.call(fence)
    eventually(lambda: controller.node.metadata.state.brokers[broker_id].fenced, "it is fenced")
    eventually(lambda: not controller.node.metadata.state.brokers[broker_id].fenced, "it is back")


def test_a_broker_dies_that_led_very_many(cluster: MeasuredCluster) -> None:
    """And comes back. Nobody follows it, so that nothing else is measured."""
    broker_id = cluster.other.node.metadata.node_id
    names = iter("uvwxyz")

    def cost() -> Callback:
        name = next(names)
        topic = by_hand(name, MANY)
        for assignment in topic.assignments:
            assignment.broker_ids = [broker_id]
        create(cluster.other, topic)
        worst = cluster.cost(lambda: fenced(cluster, broker_id))
        delete(cluster.other, name)
        return worst

    worst = best_of(cost)
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_opened_partitions_change_their_roles(cluster: MeasuredCluster) -> None:
    create(cluster.other, by_hand("opened", OPENED, 2))
    for node in cluster.nodes:
        eventually(lambda node=node: not node.node.partitions.unopened, "all are opened", 120)
    broker_id = cluster.other.node.metadata.node_id
    worst = best_of(lambda: cluster.cost(lambda: fenced(cluster, broker_id)))
    delete(cluster.other, "opened")
    assert worst.cpu_ms <= BUDGET_MS, worst


def everything(node: MeasuredNode) -> list[Item]:
    """A snapshot of what the node knows, and a topic of very many partitions that it has, too."""
    state = node.node.metadata.state.copy()
    records: list[Any] = [journal.TopicRecord(name="large", topic_id=b"\7" * 16)]
    me = node.node.metadata.node_id
    for index in range(IN_SNAPSHOT):
        record = journal.PartitionRecord(
            partition_id=index, topic_id=b"\7" * 16, replicas=[me], isr=[me], leader=me, leader_epoch=0,
            partition_epoch=0, removing_replicas=[], adding_replicas=[], directories=[],
        )  # fmt: skip
        records.append(record)
    state.apply_all(records)
    return [Item(at, 1, 0, entry) for at, entry in enumerate(snapshot(state))]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    with MeasuredNode(tmp_path_factory.mktemp("node")) as node:
        yield node


class TestAClusterOfVeryManyPartitions:
    """In this order."""

    def test_is_loaded_while_the_node_serves(self, large: MeasuredNode) -> None:
        host, items = large.node.metadata, everything(large)

        def load() -> None:
            steps = host.loading_snapshot(items, host.end_offset, host.last_epoch)
            loading = large.node.runtime.slices.finish(steps)
            asyncio.run_coroutine_threadsafe(loading, large.loop).result(120)

        worst = best_of(lambda: large.cost(load))
        assert len(host.state.topics["large"].partitions) == IN_SNAPSHOT
        assert worst.cpu_ms <= BUDGET_MS, worst

    def test_is_written_to_a_snapshot(self, large: MeasuredNode) -> None:
        host, snapshots = large.node.metadata, large.node.member.snapshots

        def write() -> None:
            snapshots._interval_ms, snapshots._next_ms = 1, 0
            large.call(lambda: snapshots.upkeep(1))
            large.call(lambda: None)
            eventually(lambda: snapshots._writing is None, "it is written", 120)

        worst = best_of(lambda: large.cost(write))
        assert large.node.member.quorum.snapshot_offset == host.end_offset
        assert worst.cpu_ms <= BUDGET_MS, worst

    @pytest.mark.parametrize(
        ("request_", "version"),
        [
            (MetadataRequest(topics=None, allow_auto_topic_creation=False), 12),
            (DescribeLogDirsRequest(topics=None), 4),
        ],
        ids=["Metadata", "DescribeLogDirs"],
    )
    def test_is_described(self, large: MeasuredNode, request_: Any, version: int) -> None:
        def ask() -> None:
            with large.connect() as connection:
                connection.call(request_, version)

        worst = best_of(lambda: large.cost(ask))
        assert worst.cpu_ms <= BUDGET_MS, worst
