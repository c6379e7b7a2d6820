"""What goes to other nodes: gathered, one request at a time."""

from __future__ import annotations

import asyncio

from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import Outbox


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
        assert [outbox.waiting(key) for key in (7, 8, 9)] == [3, 0, 0]
        answers[0].set(None)
        assert sent[2:] == [(7, ["a2", "d1", "e1"])]
        answers[2].set(None)
        answers[1].set(None)
        outbox.put(7, "f1")
        await asyncio.sleep(0)
        assert sent[3:] == [(7, ["f1"])]

    asyncio.run(talk())
