"""Three nodes: a quorum forms, brokers join, requests find the controller, and the end of a node is no end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports

from ottla.client.connection import Address, Connection
from ottla.server.node import Node, loop_factory, system_ports
from ottla.wire import api
from ottla.wire.message import Request
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest

WITHIN_S = 30


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await test()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(bounded())


def settings(directory: Path, count: int, **more: str) -> list[dict[str, str]]:
    """Properties of `count` combined nodes; underscores in the names of `more` stand for dots."""
    ports = free_ports(2 * count)
    voters = ",".join(f"{number + 1}@127.0.0.1:{ports[2 * number + 1]}" for number in range(count))
    return [
        {
            "process.roles": "broker,controller",
            "node.id": str(number + 1),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{ports[2 * number]},CONTROLLER://127.0.0.1:{ports[2 * number + 1]}",
            "log.dirs": str(directory / str(number + 1)),
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        for number in range(count)
    ]


@asynccontextmanager
async def running(values: list[dict[str, str]]) -> AsyncIterator[dict[int, Node]]:
    nodes = {int(each["node.id"]): Node(each, system_ports(each)) for each in values}
    try:
        await asyncio.gather(*(node.start() for node in nodes.values()))
        yield nodes
    finally:
        await asyncio.gather(*(node.stop() for node in nodes.values()))


async def ask(node: Node, request: Request) -> Any:
    """As a client of this node's listener."""
    endpoint = next(each for each in node._endpoints if each.name == "PLAINTEXT")
    connection = await Connection.open(Address(endpoint.host, endpoint.port))
    try:
        return await connection.request(request, api.response_class(type(request).key))
    finally:
        connection.close()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110  # what is waited for is inside of nodes
            await asyncio.sleep(0.01)


async def create(node: Node, name: str, partitions: int = 3, replicas: int = 3) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=[]
    )
    answer = await ask(node, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    (made,) = answer.topics
    return made


def active(nodes: dict[int, Node]) -> Node:
    (found,) = [node for node in nodes.values() if node.member.controller.active]
    return found


def test_a_quorum_forms_and_any_broker_takes_requests(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            assert len({node.metadata.cluster_id for node in nodes.values()}) == 1
            for node in nodes.values():
                await until(lambda node=node: sorted(node.metadata.state.controllers) == [1, 2, 3])
                await until(
                    lambda node=node: [broker.fenced for broker in node.metadata.state.brokers.values()] == [False] * 3
                )
            for number, node in nodes.items():
                made = await create(node, f"t{number}")
                assert made.error_code == 0, made
                assert (made.num_partitions, made.replication_factor) == (3, 3)
            twice = await create(next(node for node in nodes.values() if node is not active(nodes)), "t1")
            assert twice.error_code == 36 and "already exists" in twice.error_message
            for node in nodes.values():
                await until(lambda node=node: sorted(node.metadata.state.topics) == ["t1", "t2", "t3"])
                answer = await ask(
                    node, MetadataRequest(topics=[MetadataRequest.Topic(name="t1")], allow_auto_topic_creation=False)
                )
                assert sorted(broker.node_id for broker in answer.brokers) == [1, 2, 3]
                assert answer.controller_id in nodes
                (topic,) = answer.topics
                assert sorted(partition.leader_id for partition in topic.partitions) == [1, 2, 3]
                assert all(sorted(partition.isr_nodes) == [1, 2, 3] for partition in topic.partitions)
            described = await ask(nodes[1], DescribeClusterRequest(include_cluster_authorized_operations=False))
            assert len(described.brokers) == 3 and described.cluster_id == nodes[1].metadata.cluster_id

    run(test)
