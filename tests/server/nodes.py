"""Nodes of one cluster in this process: their settings, their start, and requests to one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S

from ottla.client.connection import Address, Connection
from ottla.cluster.store import DOUBT
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.server.process import loop_factory
from ottla.server.settings.listeners import ListenerAddress
from ottla.wire.message import Request, Response
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

R = TypeVar("R", bound=Response)


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
        # One that formatted itself and heard of the others too late does not vote for some seconds (ADR 0022).
        await until(lambda: not any((Path(each["log.dirs"]) / DOUBT).exists() for each in values))
        yield nodes
    finally:
        await asyncio.gather(*(node.stop() for node in nodes.values()))


async def ask(node: Node, request: Request[R], listener: str = "PLAINTEXT") -> R:
    """As a client of this node's listener."""
    endpoint = listener_of(node, listener)
    connection = await Connection.open(Address(endpoint.host, endpoint.port))
    try:
        return await connection.request(request)
    finally:
        connection.close()


def listener_of(node: Node, name: str) -> ListenerAddress:
    """The address of one of the node's listeners, as in its settings."""
    assert node.composed is not None
    return next(each for each in node.composed.settings.listeners if each.name == name)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110  # what is waited for is inside of nodes
            await asyncio.sleep(0.01)


async def alter(node: Node, settings: list[tuple[int, str, str, str]]) -> None:
    """(kind, resource, setting, value) each."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    for kind, name, key, value in settings:
        change = resource.AlterableConfig(name=key, config_operation=0, value=value)
        asked = resource(resource_type=kind, resource_name=name, configs=[change])
        answer = await ask(node, IncrementalAlterConfigsRequest(resources=[asked], validate_only=False))
        assert answer.responses[0].error_code == 0, answer


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
