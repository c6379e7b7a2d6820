"""What runs while a cluster is broken: the shape of every workload, and how it goes on over everything that happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import ReadOptions
from ottla.client.consumer.ranges import RangeReader, Span
from ottla.client.errors import ClientError
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model.errors import ApiError

PARTITIONS = 3
PAUSE_S = 0.2


class Entrance(NamedTuple):
    """Where clients come in: the addresses of the brokers, and settings (of Java's and our client) of who they are."""

    bootstrap: str
    security: Mapping[str, str] | None = None


class Work(Protocol):
    name: str

    def start(self) -> None:
        """The cluster is whole; from here on everything may go wrong."""

    async def rest(self) -> None:
        """All faults are over: stop, or come to the end of what is there."""

    async def judge(self) -> list[str]:
        """What is wrong; nobody writes any more."""

    def facts(self) -> dict[str, int]:
        """How much happened."""


def connect(entrance: Entrance) -> Cluster:
    """A client that gives up early and tries again, since the nodes it talks to may be dead or silent."""
    addresses = parse_bootstrap(entrance.bootstrap)
    options = ClientOptions(addresses, connect_timeout_ms=2_000, request_timeout_ms=8_000, security=entrance.security)
    return Cluster(options)


async def again_and_again(attempt: Callable[[], Awaitable[None]], stop: asyncio.Event) -> int:
    """Runs `attempt` until it is told to stop; how often it failed in between."""
    failures = 0
    while not stop.is_set():
        try:
            await attempt()
        except (ClientError, ApiError, OSError, TimeoutError):
            failures += 1
            await asyncio.sleep(PAUSE_S)
    return failures


async def until(condition: Callable[[], Awaitable[bool]], timeout_s: float) -> bool:
    """Whether it came true in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not await condition():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(0.5)
    return True


async def everything(
    entrance: Entrance, topic: str, *, read_committed: bool = False
) -> dict[int, list[tuple[int, bytes]]]:
    """All records of a topic: partition → (offset, value) in order."""
    found: dict[int, list[tuple[int, bytes]]] = {}
    async with connect(entrance) as cluster:
        for index in range(PARTITIONS):
            reader = RangeReader(cluster, [Span(topic, index)], ReadOptions(read_committed=read_committed))
            async with reader:
                found[index] = [(record.offset, record.value or b"") async for record in reader]
    return found
