"""What goes to other nodes: gathered, one request at a time; and the guards of transactions that are asked about."""

from __future__ import annotations

import asyncio

from ottla.model.ids import TopicPartition
from ottla.server.answer import Later
from ottla.server.elsewhere import Outbox
from ottla.server.guards import Guards

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_what_comes_while_a_request_is_under_way_goes_with_the_next() -> None:
    sent: list[tuple[int, list[str]]] = []
    answers: list[Later[None]] = []

    def send(key: int, items: list[str]) -> Later[None]:
        sent.append((key, items))
        answers.append(Later())
        return answers[-1]

    async def talk() -> None:
        outbox: Outbox[int, str] = Outbox(send, lambda item: item[0], items_max=3)
        for item in ("a1", "b1", "a2", "c1", "d1"):
            outbox.put(7, item)
        outbox.put(8, "a1")
        assert sent == []
        await asyncio.sleep(0)
        assert sent == [(7, ["a1", "b1", "c1"]), (8, ["a1"])], "one of a kind, and not too many"
        outbox.put(7, "e1")
        await asyncio.sleep(0)
        assert len(sent) == 2
        answers[0].set(None)
        assert sent[2:] == [(7, ["a2", "d1", "e1"])]
        answers[2].set(None)
        answers[1].set(None)
        outbox.put(7, "f1")
        await asyncio.sleep(0)
        assert sent[3:] == [(7, ["f1"])]

    asyncio.run(talk())


def test_a_marker_breaks_the_guards_of_its_producer_only() -> None:
    guards = Guards()
    first, second = guards.begin(1, [A, B]), guards.begin(1, [A])
    other = guards.begin(2, [A])
    guards.marked(A, 1)
    assert (first, second, other) == ({A}, {A}, set())
    guards.end(1, [A, B], first)
    later = guards.begin(1, [A])
    guards.marked(B, 1)
    assert first == {A}, "it is over"
    assert later == set()
    guards.marked(A, 2)
    assert other == {A}
