"""Sending letters back: it ends in time, and says of each letter what became of it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from tests.client.proxy import LosingProxy, ProxiedCluster

from ottla.client.blocking.blocking import Blocking
from ottla.client.options import ClientOptions, parse_address
from ottla.operations.redriving import LetterFate, LetterOutcome, send_letters
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.produce import ProduceRequest

SAID = {"topic": "orders", "partition": "0", "offset": "7", "timestamp": "1000", "reason": "schema"}
PLACES = [(0, 0), (0, 1), (0, 2)]


@pytest.fixture
def broker(tmp_path: Path) -> EmbeddedBroker:
    return EmbeddedBroker(tmp_path)


def sent_by_way_of(broker: EmbeddedBroker, chance: float, max_s: float | None) -> list[LetterOutcome]:
    """Send three letters; answers to Produce are lost with this chance."""

    async def test() -> list[LetterOutcome]:
        address = parse_address(broker.bootstrap)
        proxy = LosingProxy(address, {ProduceRequest.key: chance}, 10**6, random.Random(7))
        async with proxy, ProxiedCluster(ClientOptions(broker.bootstrap), proxy.address) as cluster:
            return await send_letters(cluster, "orders.dlq", PLACES, max_s=max_s)

    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("orders", 1)
        client.admin.topics.create("orders.dlq", 1)
        headers = [(f"ottla.dlq.{name}", text.encode()) for name, text in SAID.items()]
        for _ in PLACES:
            client.run(client.inner.send("orders.dlq", b"v", headers=headers))
        return asyncio.run(test())


def test_what_is_not_acknowledged_in_time_is_perhaps_sent(broker: EmbeddedBroker) -> None:
    """The records are in the log, and no answer ever says so."""
    with broker:
        found = sent_by_way_of(broker, 1.0, 1.5)
    assert [tuple(each.place) for each in found] == PLACES
    assert {each.fate for each in found} == {LetterFate.UNKNOWN} and all(each.why for each in found)


def test_what_there_was_no_time_for_is_not_sent(broker: EmbeddedBroker) -> None:
    with broker:
        found = sent_by_way_of(broker, 0.0, -1)
    assert {each.fate for each in found} == {LetterFate.NOT_SENT}


def test_without_a_limit_all_are_sent(broker: EmbeddedBroker) -> None:
    with broker:
        found = sent_by_way_of(broker, 0.0, None)
    assert {each.fate for each in found} == {LetterFate.SENT}
