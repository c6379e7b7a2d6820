"""What goes to other nodes: gathered, one request at a time; and the guards of transactions that are asked about."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import Outbox
from ottla.server.txns.guards import Guards
from ottla.server.txns.verification import Question, Refusals, Verification
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnResponse, PartitionResult, TopicResult

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
        assert [outbox.waiting(key) for key in (7, 8, 9)] == [3, 0, 0]
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


class Asking:
    """A node that leads `t`, and the coordinator's answers as the test wants them."""

    def __init__(self) -> None:
        self.partitions = [SimpleNamespace(leader_epoch=3), SimpleNamespace(leader_epoch=3)]
        state = SimpleNamespace(topics={"t": SimpleNamespace(partitions=self.partitions)})
        self.guards = Guards()
        self.requests: list[Any] = []
        self.answers: list[Later[Any]] = []

        def ask(_: int, request: Any, __: str) -> Later[Any]:
            self.requests.append(request)
            self.answers.append(Later())
            return self.answers[-1]

        services: Any = SimpleNamespace(
            guards=self.guards, metadata=SimpleNamespace(state=state), peer_requests=SimpleNamespace(ask=ask)
        )
        self.verification = Verification(services)

    async def about(self, name: str, *where: TopicPartition, verify_only: bool = True) -> Later[Refusals]:
        asked = self.verification.ask(2, Question(name, 9, 0, where, verify_only))
        await asyncio.sleep(0)
        return asked


def said(name: str, **codes: ErrorCode) -> AddPartitionsToTxnResponse:
    results = [
        PartitionResult(partition_index=int(index.strip("_")), partition_error_code=code)
        for index, code in codes.items()
    ]
    topics = [TopicResult(name="t", results_by_partition=results)]
    result = AddPartitionsToTxnResponse.Result(transactional_id=name, topic_results=topics)
    return AddPartitionsToTxnResponse(results_by_transaction=[result])


def test_a_transaction_that_ends_while_it_is_asked_about_takes_no_more() -> None:
    async def talk() -> None:
        asking = Asking()
        asked = await asking.about("x", A, B)
        asking.guards.marked(B, 9)
        asking.answers[0].set(said("x", _0=ErrorCode.NONE, _1=ErrorCode.NONE))
        assert asked.taken() == {B: ErrorCode.INVALID_TXN_STATE}
        asked = await asking.about("x", A, B)
        asking.partitions[0].leader_epoch = 5  # led by another meanwhile, which may have seen the marker
        asking.answers[1].set(said("x", _0=ErrorCode.NONE, _1=ErrorCode.TRANSACTION_ABORTABLE))
        assert asked.taken() == {A: ErrorCode.NETWORK_EXCEPTION, B: ErrorCode.TRANSACTION_ABORTABLE}
        asked = await asking.about("x", A, B)
        asking.answers[2].set(said("x", _0=ErrorCode.NONE, _1=ErrorCode.NONE))
        assert asked.taken() == {}

    asyncio.run(talk())


def test_a_marker_of_the_transaction_before_ends_none_that_is_just_beginning() -> None:
    async def talk() -> None:
        asking = Asking()
        asked = await asking.about("x", A, B, verify_only=False)
        asking.guards.marked(B, 9)
        asking.answers[0].set(said("x", _0=ErrorCode.NONE, _1=ErrorCode.NONE))
        assert asked.taken() == {B: ErrorCode.NETWORK_EXCEPTION}, "asked again: both handlers tell clients so"
        asked = await asking.about("x", A, B, verify_only=False)
        asking.guards.marked(B, 9)
        asking.answers[1].set(said("x", _0=ErrorCode.NONE, _1=ErrorCode.PRODUCER_FENCED))
        assert asked.taken() == {B: ErrorCode.PRODUCER_FENCED}, "it was this one that ended"

    asyncio.run(talk())


def test_transactions_are_asked_about_together_and_a_lost_answer_refuses_all() -> None:
    async def talk() -> None:
        asking = Asking()
        first = asking.verification.ask(2, Question("x", 9, 0, (A,), verify_only=True))
        second = await asking.about("y", B)
        assert [each.transactional_id for each in asking.requests[0].transactions] == ["x", "y"]
        asking.answers[0].set(ApiError(ErrorCode.NETWORK_EXCEPTION))
        assert first.taken() == {A: ErrorCode.NETWORK_EXCEPTION}
        assert second.taken() == {B: ErrorCode.NETWORK_EXCEPTION}

    asyncio.run(talk())
