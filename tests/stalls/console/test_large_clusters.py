"""The first look at a cluster of 10,000 topics: the loop that serves the console's pages serves others meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor
from tests.stalls.measuring.measure import BUDGET_MS, Callback, best_of, recorded, without_collections

from ottla.client.admin import Admin
from ottla.client.admin.topics import NewTopic
from ottla.console import pages
from ottla.console.options import ConsoleOptions
from ottla.console.service import ConsoleService
from ottla.testing.broker import EmbeddedBroker

TOPICS, AT_ONCE = 10_000, 1_000


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    async def fill(bootstrap: str) -> None:
        async with Admin(bootstrap) as admin:
            names = [f"orders.{number:05}" for number in range(TOPICS)]
            for first in range(0, TOPICS, AT_ONCE):
                (await admin.topics.create_each([NewTopic(each, 1) for each in names[first : first + AT_ONCE]])).all()

    pages.load()  # once for the process, before anybody visits it
    with EmbeddedBroker(tmp_path_factory.mktemp("data")) as broker:
        asyncio.run(fill(broker.bootstrap))
        yield broker


def worst_of(broker: EmbeddedBroker, path: str) -> Callback:
    """The dearest callback of the loop of a console that has just been started, until a page of it is there."""

    async def visit() -> asyncio.AbstractEventLoop:
        console = ConsoleService(ConsoleOptions(broker.bootstrap, port=0))
        await console.start()
        try:
            shown = await asyncio.to_thread(Visitor(console.url).get, path)
            assert shown.status == 200, shown.words
            assert "10,000" in shown.words or path != "/topics"
            await asyncio.sleep(2)  # what goes on in the background
        finally:
            await console.stop()
        return asyncio.get_running_loop()

    with recorded() as recording, without_collections():
        loop = asyncio.run(visit())
        return recording.worst(loop)


@pytest.mark.parametrize("path", ["/topics", "/topics?sort=-partitions&q=9", "/", "/brokers", "/brokers/moves", "/sql"])
def test_the_first_look_holds_nobody_up(crowded: EmbeddedBroker, path: str) -> None:
    worst = best_of(lambda: worst_of(crowded, path))
    assert worst.cpu_ms <= BUDGET_MS, worst
