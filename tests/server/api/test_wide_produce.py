"""Produces in portions: which of them the next one waits for."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.storages import facades_of

from ottla.model import limits
from ottla.server.api.context import Context, Peer
from ottla.server.api.turns import keep_turn
from ottla.server.api.wide_produce import _PORTIONS, is_wide, produce_in_portions
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


def topics_of(sizes: list[int]) -> list[TopicData]:
    data = [
        TopicData.PartitionProduceData(index=index, records=memoryview(bytes(size))) for index, size in enumerate(sizes)
    ]
    return [TopicData(name="t", partition_data=data)]


@pytest.mark.parametrize("sizes", [[900_000], [100_000] * 10, [20_000] * 49, [100] * 49, [4 * limits.MIB]])
def test_requests_of_usual_clients_are_not_divided(sizes: list[int]) -> None:
    assert not is_wide(topics_of(sizes)) or len(sizes) == 1, "a batch cannot be divided"


def test_portions_are_bounded_by_their_bytes() -> None:
    """As one batch of the usual largest size costs: so much, for several partitions."""
    sizes = [900_000] * 5 + [300_000] * 5 + [4 * limits.MIB] + [1_000] * 70 + [900_000]
    assert is_wide(topics_of(sizes))
    portions: list[list[int]] = []
    soon: list[Callable[[], None]] = []
    runtime: Any = SimpleNamespace(slices=SimpleNamespace(soon=soon.append))
    context = Context(facades_of(runtime), Peer("", ("", 0), ("", 0)))

    def produce(request: ProduceRequest) -> Later[Any]:
        portions.append([len(data.records or b"") for topic in request.topic_data for data in topic.partition_data])
        return Later()

    produce_in_portions(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics_of(sizes)), context, produce)
    while soon:
        soon.pop()()
    assert [size for portion in portions for size in portion] == sizes, "in their order"
    assert all(sum(portion) <= limits.BYTES_PRODUCED_PER_SLICE * 1.05 or len(portion) == 1 for portion in portions)
    assert len(portions) < 14
