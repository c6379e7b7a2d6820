"""Dead letters for partitions that other nodes lead."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.log.inspection import Placed
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.acknowledging import Pending, wait_for_placed
from ottla.server.dead_letters.remote_letters import RemoteBatch, RemoteLetters, RemotePartition
from ottla.server.loop.later import Later
from ottla.wire.messages.records.produce import ProduceResponse

TO = RemotePartition(2, bytes(16), "letters", 0)


class Peers:
    """Another node, whose answers the test gives."""

    def __init__(self) -> None:
        self.asked: list[Later[Any]] = []

    def ask(self, *_: object) -> Later[Any]:
        self.asked.append(Later())
        return self.asked[-1]


def answer(code: ErrorCode) -> Any:
    partition = SimpleNamespace(error_code=code.value)
    return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[partition])])


def test_a_leader_that_does_not_answer_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEAD_LETTER_BATCHES_WAITING_MAX", 3)
    peers: Any = Peers()
    one = [bytearray(b"x")]

    async def talk() -> None:
        letters = RemoteLetters(peers, lambda _: None)
        letters.put(TO, one)
        await asyncio.sleep(0)  # it is on its way, for ever
        for _ in range(3):
            letters.put(TO, one)
        with pytest.raises(ApiError) as refused:
            letters.put(TO, one)
        assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS

    asyncio.run(talk())


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_batches_of_a_partition_go_one_after_the_other_and_each_is_settled(code: ErrorCode) -> None:
    peers: Any = Peers()
    told: list[RemoteBatch] = []

    async def talk() -> None:
        placed = RemoteLetters(peers, told.append).put(TO, [bytearray(b"x"), bytearray(b"y")])
        await asyncio.sleep(0)
        assert len(peers.asked) == 1
        peers.asked[0].set(answer(code))
        assert told == [placed[0].partition] and len(peers.asked) == 2
        stored = [each.partition.high_watermark >= each.end for each in placed]
        lost = [each.partition.cuts != each.cuts for each in placed]
        assert (stored, lost) == ([not code, False], [bool(code), False])

    asyncio.run(talk())


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_producer_waits_for_letters_that_are_on_their_way(acks: int) -> None:
    """Also one with acks=1: until another node has stored the letter, only memory has it."""
    pending: list[Pending] = []
    answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse(index=0, error_code=0, base_offset=7)
    wait_for_placed((Placed(RemoteBatch(bytearray(b"x")), 0, 1),), acks, pending, answer)
    assert len(pending) == 1


def test_an_answer_without_the_partition_stores_nothing() -> None:
    batch = RemoteBatch(bytearray(b"x"))
    batch.settle(ProduceResponse(responses=[]))
    assert (batch.cuts, batch.high_watermark) == (1, 0)
