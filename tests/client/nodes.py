"""Three nodes, ours or a real Kafka's, for tests that say the same of both."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.support.processes.clusters import KafkaCluster, OttlaCluster, ProcessCluster, running

from ottla import Admin

KINDS = ["ottla", pytest.param("kafka", marks=pytest.mark.compat)]


def three_nodes(
    request: pytest.FixtureRequest, factory: pytest.TempPathFactory, properties: dict[str, str]
) -> Iterator[ProcessCluster]:
    """The body of a fixture whose `params` are KINDS; each node is in a rack of its own."""
    kind = OttlaCluster if request.param == "ottla" else KafkaCluster
    if request.param == "kafka":
        request.getfixturevalue("java_tools")
    made = kind(factory.mktemp("cluster"), racks={1: "a", 2: "b", 3: "c"}, properties=properties)
    with running(made) as started:
        yield started


def run(cluster: ProcessCluster, test: Callable[[Admin], Awaitable[None]], *, within_s: float = 90) -> None:
    async def main() -> None:
        async with asyncio.timeout(within_s), Admin(cluster.bootstrap) as admin:
            await test(admin)

    asyncio.run(main())
