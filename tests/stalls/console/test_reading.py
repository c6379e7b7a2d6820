"""The console reads much: its loop serves other visitors meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.stalls.measuring.measure import BUDGET_MS, Callback, best_of, recorded

from ottla.client.admin import Admin
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.consumer.ranges import Span
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.operations.records.contents import RecordReader
from ottla.operations.records.json_paths import json_condition
from ottla.operations.records.reading import read_page
from ottla.operations.records.searching import SearchPlace, Wanted, search
from ottla.testing.broker import EmbeddedBroker

SMALL, LARGE = 60_000, 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker with many small records in large batches, and some that are near the largest there may be."""
    large = json.dumps({"items": [{"id": number, "name": f"item {number}"} for number in range(26_000)]}).encode()

    async def fill(bootstrap: str) -> None:
        options = ProducerOptions(batch_size_bytes=900_000, linger_ms=100, codec="gzip")
        async with Admin(bootstrap) as admin, Producer(bootstrap, options) as producer:
            for topic in ("small", "large"):
                await admin.topics.create(topic)
            for number in range(SMALL):
                await producer.post("small", b'{"number": %d, "text": "some text"}' % number)
            for _ in range(LARGE):
                await producer.post("large", large)

    with EmbeddedBroker(Path(tmp_path_factory.mktemp("data"))) as broker:
        asyncio.run(fill(broker.bootstrap))
        yield broker


@asynccontextmanager
async def opened(broker: EmbeddedBroker, topic: str) -> AsyncIterator[tuple[Admin, PartitionBounds]]:
    async with Admin(broker.bootstrap) as admin:
        yield admin, (await admin.topics.bounds(topic))[0]


def worst_of(broker: EmbeddedBroker, topic: str, *, searches: bool) -> Callback:
    """The dearest callback of a search through a topic, or of its newest page."""

    async def work() -> asyncio.AbstractEventLoop:
        async with opened(broker, topic) as (admin, bounds):
            if searches:
                wanted = Wanted(SearchPlace.path, condition=json_condition("$.none"))
                spans = [Span(topic, 0, bounds.start, bounds.end)]
                steps = [each async for each in search(admin.cluster, spans, wanted, RecordReader(None))]
                assert steps[-1].looked_at == bounds.end
            else:
                page = await read_page(
                    admin.cluster, topic, {0: bounds.end}, {0: bounds}, forward=False, count=min(bounds.end, 200)
                )
                assert page.records
        return asyncio.get_running_loop()

    with recorded() as recording:
        loop = asyncio.run(work())
        return recording.worst(loop)


@pytest.mark.parametrize("topic", ["small", "large"])
@pytest.mark.parametrize("searches", [True, False], ids=["a search", "a page"])
def test_reading_holds_nobody_up(broker: EmbeddedBroker, topic: str, searches: bool) -> None:
    worst = best_of(lambda: worst_of(broker, topic, searches=searches))
    assert worst.cpu_ms <= BUDGET_MS, worst
