"""Explanations: verdicts after some seconds of watching, and what the coordinator remembers."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from tests.console.consoles import Visitor
from tests.console.pages.groups.people import fill, member
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.console.html import Markup
from ottla.model.ids import TopicPartition
from ottla.testing.broker import EmbeddedBroker


def explained(visitor: Visitor, group: str) -> str:
    """The words of the last part of the stream, after its progress."""
    assert f'data-stream="/groups/{group}/lag/run?seconds=' in visitor.get(f"/groups/{group}/lag").text
    parts = visitor.stream(f"/groups/{group}/lag/run?seconds=1")
    assert "Watching the group: 0 of 1 s" in parts[0]["html"] and parts[-1]["into"] == "found"
    return Markup(parts[-1]["html"])


def test_nobody_reads(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "alone", 30)
    with member(broker.bootstrap, "lonely", "alone") as consumer:
        consumer.commit(offsets=[Place("alone", 0, 10)], asynchronous=False)
    found = explained(visitor, "lonely")
    assert "no consumer" in found and "20 records behind in 1 partition" in found
    assert "the last member, reader on" in found and "has waited for" in found
    assert "start a consumer of the group" in found and "/groups/lonely/rebalances" in found


def test_the_transaction_that_holds_the_group_is_named(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "held", 5)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "<i>pay</i>"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("held", b"x", partition=0)
    producer.flush(30)
    with member(broker.bootstrap, "waiting", "held", **{"isolation.level": "read_committed"}) as consumer:
        consumer.commit(offsets=[Place("held", 0, 5)], asynchronous=False)
        found = explained(visitor, "waiting")
        assert "open transaction" in found and "&lt;i&gt;pay&lt;/i&gt;" in found and "<i>pay" not in found
        assert "readable up to 5, written up to 8" in found
        assert "/transactions/%3Ci%3Epay%3C%2Fi%3E" in found
        producer.abort_transaction(30)
        consumer.commit(offsets=[Place("held", 0, 9)], asynchronous=False)
        assert "keeps up" in explained(visitor, "waiting")


def test_an_offset_beyond_the_end_leads_to_the_reset(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "short", 3)
    with Blocking(broker.bootstrap) as client:
        client.admin.groups.set_offsets("ahead", {TopicPartition("short", 0): 90})
    found = explained(visitor, "ahead")
    assert "beyond end" in found and 'href="/groups/ahead/reset"' in found


def test_an_error_ends_the_stream_with_a_sentence(visitor: Visitor) -> None:
    assert visitor.get("/groups/nobody/lag").status == 404
    (*_, last) = visitor.stream("/groups/nobody/lag/run?seconds=1")
    assert last["into"] == "failed" and "there is no group" in last["html"]
    assert visitor.part("/groups/nobody/lag/run?seconds=0").status == 400


def test_rebalances(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "turns", {0: 1, 1: 1})
    quick: dict[str, Any] = {"session.timeout.ms": 6_000, "client.id": "<b>slow</b>"}
    with member(broker.bootstrap, "turning", "turns", **quick):
        until(lambda: visitor.get("/groups/turning").words, lambda words: "Stable" in words)
        page = visitor.get("/groups/turning/rebalances")
        assert "rebalance began because member <b>slow</b> of host 127.0.0.1 joined" in page.words
        assert "<b>slow" not in page.text and "nothing from before" in page.words
        broker.clock.advance("8s")
        page = until(
            lambda: visitor.get("/groups/turning/rebalances"), lambda found: "members timed out 0" not in found.words
        )
    assert "sent no heartbeat for session.timeout.ms=6000" in visitor.get("/groups/turning/rebalances").words
    page = visitor.get("/groups/turning/rebalances?q=timed+out")
    assert "What to change" in page.words and "raise session.timeout.ms of the client" in page.words
    assert "timed out" in page.words and "session.timeout.ms=6000" in page.words


def test_a_group_of_which_nothing_is_remembered(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "quiet", 1)
    with Blocking(broker.bootstrap) as client:
        client.admin.groups.set_offsets("quiet", {TopicPartition("quiet", 0): 0})
    assert "nothing has happened to the group" in visitor.get("/groups/quiet/rebalances").words
