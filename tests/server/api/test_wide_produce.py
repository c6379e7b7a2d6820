"""Produces in portions: which of them the next one waits for."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.storages import facades_of

from ottla.server.api.context import Context, Peer
from ottla.server.api.turns import keep_turn
from ottla.server.api.wide_produce import _PORTIONS, produce_in_portions
from ottla.server.loop.later import Later
from ottla.wire.messages.records.produce import ProduceRequest

TopicData = ProduceRequest.TopicProduceData
PORTIONS = 3


class Served:
    """`answer` is what each portion is answered; nothing that is awaited ever comes."""

    def __init__(self, answer: Callable[[Context], Later[Any]]) -> None:
        self.soon: list[Callable[[], None]] = []
        runtime: Any = SimpleNamespace(slices=SimpleNamespace(soon=self.soon.append))
        self.context = Context(facades_of(runtime), Peer("", ("", 0), ("", 0)))
        self.begun = 0

        def produce(_: ProduceRequest) -> Later[Any]:
            self.begun += 1
            return answer(self.context)

        data = [
            TopicData.PartitionProduceData(index=index, records=None) for index in range(_PORTIONS.items * PORTIONS)
        ]
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicData(name="t", partition_data=data)])
        produce_in_portions(request, self.context, produce)
        while self.soon:
            self.soon.pop()()


def appended(context: Context) -> Later[Any]:
    return Later()


def unwritten(context: Context) -> Later[Any]:
    context.hold()  # as `held_until_written` does
    return Later()


def on_its_way(context: Context) -> Later[Any]:
    awaited: Later[None] = Later()
    return keep_turn(context, awaited, lambda _: None)


@pytest.mark.parametrize(("answer", "begun"), [(appended, PORTIONS), (unwritten, PORTIONS), (on_its_way, 1)])
def test_what_is_appended_is_not_waited_for(answer: Callable[[Context], Later[Any]], begun: int) -> None:
    assert Served(answer).begun == begun
