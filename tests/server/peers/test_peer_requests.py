"""What goes to other nodes: gathered, one request at a time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.later import Later, settled
from ottla.server.peers.peer_requests import Outbox, PeerQuestions


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


class Doubling(PeerQuestions[int, int, Any, str]):
    """Asks other nodes for the double of numbers, by ids."""

    purpose = "test"

    def node_of(self, key: int) -> int:
        return key

    def identity(self, question: int) -> int:
        return question

    def request(self, key: int, questions: list[int]) -> Any:
        return questions

    def answers(self, key: int, response: Any) -> Any:
        return response

    def refused(self, question: int, error: ApiError) -> str:
        return f"{question}: {error.code.name}"


def test_each_question_of_a_request_gets_its_own_answer() -> None:
    sent: list[tuple[int, Any, str]] = []
    answers: list[Later[Any]] = []

    def ask(*request: Any) -> Later[Any]:
        sent.append(request)
        answers.append(Later())
        return answers[-1]

    async def talk() -> None:
        requests: Any = SimpleNamespace(ask=ask)
        asking = Doubling(requests)
        asked = [asking.ask(7, number) for number in (1, 2, 3)]
        await asyncio.sleep(0)
        assert sent == [(7, [1, 2, 3], "test")]
        asked.append(asking.ask(7, 4))
        answers[0].set({1: "2", 3: "6"})
        assert [each.taken() for each in asked[:3]] == ["2", "2: NETWORK_EXCEPTION", "6"]
        answers[1].set(ApiError(ErrorCode.NOT_COORDINATOR))
        assert asked[3].taken() == "4: NOT_COORDINATOR"
        refused = asking.ask(8, 5)
        await asyncio.sleep(0)
        answers[2].set({5: ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)})
        assert isinstance(refused.taken(), ApiError)

    asyncio.run(talk())


def test_a_reader_that_fails_hurts_no_other() -> None:
    async def talk() -> None:
        answer: Later[Any] = Later()
        requests: Any = SimpleNamespace(ask=lambda *_: answer)
        asking = Doubling(requests)
        told: list[str] = []

        def fail(_: str) -> None:
            raise ValueError

        asking.ask(7, 1).then(fail, pytest.fail)
        asking.ask(7, 2).then(told.append, pytest.fail)
        await asyncio.sleep(0)
        answer.set({1: "2", 2: "4"})
        assert told == ["4"]

    asyncio.run(talk())


def test_a_request_that_cannot_be_made_refuses_its_questions_and_hurts_no_later_one() -> None:
    class Unlucky(Doubling):
        def request(self, key: int, questions: list[int]) -> Any:
            assert 13 not in questions, "unlucky"
            return questions

    async def talk() -> None:
        requests: Any = SimpleNamespace(ask=lambda node_id, numbers, purpose: settled({n: str(2 * n) for n in numbers}))
        asking = Unlucky(requests)
        unlucky = asking.ask(7, 13)
        await asyncio.sleep(0)
        assert unlucky.taken() == "13: UNKNOWN_SERVER_ERROR"
        later = asking.ask(7, 1)
        await asyncio.sleep(0)
        assert later.taken() == "2"

    asyncio.run(talk())


def test_an_answer_that_cannot_be_read_refuses_the_questions() -> None:
    class Unreadable(Doubling):
        def answers(self, key: int, response: Any) -> Any:
            raise KeyError(key)

    async def talk() -> None:
        requests: Any = SimpleNamespace(ask=lambda *_: settled("gibberish"))
        asked = Unreadable(requests).ask(7, 1)
        await asyncio.sleep(0)
        assert asked.taken() == "1: UNKNOWN_SERVER_ERROR"

    asyncio.run(talk())


def test_items_that_cannot_be_sent_do_not_hold_up_those_behind_them() -> None:
    sent: list[str] = []

    def send(key: int, items: list[str]) -> Later[None]:
        if "a1" in items:
            raise ValueError
        sent.extend(items)
        return settled(None)

    async def talk() -> None:
        outbox: Outbox[int, str] = Outbox(send, lambda item: item[0])
        for item in ("a1", "a2"):
            outbox.put(7, item)
        for _ in range(2):
            await asyncio.sleep(0)
        assert sent == ["a2"]

    asyncio.run(talk())
