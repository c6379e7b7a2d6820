"""The list of groups: every kind, filters, and the lag of the page that is shown only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.console.consoles import Visitor
from tests.console.pages.groups.people import HOSTILE, fill, member

from ottla.client.admin import Admin
from ottla.client.blocking.blocking import Blocking
from ottla.client.connection import Connection
from ottla.console.named import named_path
from ottla.model.ids import TopicPartition
from ottla.testing.broker import EmbeddedBroker

MANY = 5_000


def test_kinds_states_and_lag(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "listed", {0: 30, 1: 12})
    with Blocking(broker.bootstrap) as client:
        client.admin.groups.set_offsets("spark-revenue", {TopicPartition("listed", 0): 10})
        client.admin.groups.set_offsets(HOSTILE, {TopicPartition("listed", 1): 12})
    with (
        member(broker.bootstrap, "old", "listed"),
        member(broker.bootstrap, "new", "listed", **{"group.protocol": "consumer"}),
    ):
        page = visitor.get("/groups")
        for group, kind in (("old", "classic Stable 1"), ("new", "consumer (KIP-848) Stable 1")):
            assert f"{group} {kind}" in page.words
        assert "spark-revenue Spark query Empty 0 1 20" in page.words
        assert "<script>alert(1)" not in page.text and "\u202e" not in page.text
        assert "consumer 1" in page.words and "Spark query 1" in page.words
        only = visitor.get("/groups?kind=consumer")
        assert "new consumer" in only.words and "spark-revenue" not in only.words
        assert "old" not in visitor.get("/groups?q=SPARK").words.partition("Waiting")[2]
        assert "Stable" not in visitor.get("/groups?state=Empty").words.partition("Waiting")[2]


def test_few_groups_are_sorted_by_lag(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "sorted", 9)
    with Blocking(broker.bootstrap) as client:
        for name, offset in (("lag-b", 2), ("lag-a", 9), ("lag-c", 5)):
            client.admin.groups.set_offsets(name, {TopicPartition("sorted", 0): offset})
    for sort, order in (("lag", "acb"), ("-lag", "bca")):
        words = visitor.get(f"/groups?q=lag-&sort={sort}").words
        assert sorted(order, key=lambda each: words.index(f"lag-{each} classic")) == list(order)


def test_a_hostile_name_has_pages(broker: EmbeddedBroker, visitor: Visitor) -> None:
    for name in (HOSTILE, "..", "a/b"):
        with Blocking(broker.bootstrap) as client:
            if "listed2" not in client.admin.topics.names():
                fill(broker.bootstrap, "listed2", 5)
            client.admin.groups.set_offsets(name, {TopicPartition("listed2", 0): 2})
        for part in ([], ["assignment"], ["partitions"], ["lag"], ["rebalances"], ["reset"], ["delete"]):
            shown = visitor.get(named_path("groups", name, *part))
            assert shown.status == 200, shown.words
            assert "<script>alert" not in shown.text and "<img" not in shown.text and "\u202e" not in shown.text
        assert "listed2-0 2 5 3" in visitor.get(named_path("groups", name, "partitions")).words


def test_no_such_group(visitor: Visitor) -> None:
    shown = visitor.get("/groups/nobody")
    assert (shown.status, "there is no group" in shown.words) == (404, True)


def test_five_thousand_groups_take_few_requests(
    broker: EmbeddedBroker, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def make() -> None:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.create("crowded", 1)
            for first in range(0, MANY, 100):
                some = range(first, first + 100)
                at = {TopicPartition("crowded", 0): 0}
                await asyncio.gather(*(admin.groups.set_offsets(f"crowd-{each:04}", at) for each in some))

    asyncio.run(make())
    asked: list[str] = []
    request = Connection.request

    def counted(self: Connection, what: Any, *more: Any, **named: Any) -> Any:
        asked.append(type(what).__name__)
        return request(self, what, *more, **named)

    monkeypatch.setattr(Connection, "request", counted)
    page = visitor.get("/groups?sort=-group&q=crowd")
    assert "5,000 of" in page.words and "crowd-4999" in page.words and "crowd-4949" not in page.words
    assert "page 1 of 100" in page.words
    assert asked.count("ListGroupsRequest") == 1
    assert "sort=lag" not in page.text, "that would take the lag of all of them"
    assert len(asked) < 220, "some for the page, and four for each of its 50 groups, two of them for its coordinator"
    assert "crowd-0049" in visitor.get("/groups?sort=group&page=1&q=crowd").words
