"""Requests in portions: what is divided is put together again, in order, whenever the answers come."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.server.api.portions import Portions, in_portions
from ottla.server.loop.later import Disconnect, Large, Later, Sliced
from ottla.server.loop.slices import Slices
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

Asked = ListOffsetsRequest.Topic
Told = ListOffsetsResponse.TopicResponse


def handled(portions: Portions, request: Any, handler: Any) -> tuple[Any, list[Any]]:
    """The answer, and the requests that the handler saw."""
    seen: list[Any] = []

    def handle(portion: Any, context: Any) -> Any:
        assert context.request_version == 7
        seen.append(portion)
        return handler(portion)

    async def run() -> Any:
        runtime = SimpleNamespace(slices=Slices(asyncio.get_running_loop()))
        context: Any = SimpleNamespace(request_version=7, runtime=runtime)
        answer: Any = in_portions(portions, handle)(request, context)
        context.request_version = 1  # of another request, which came meanwhile
        if not isinstance(answer, Sliced):
            return answer
        answer = await answer
        return answer.response if isinstance(answer, Large) else answer

    return asyncio.run(run()), seen


def asked(*counts: int) -> ListOffsetsRequest:
    ask = ListOffsetsRequest.Topic.Partition
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            Asked(name=f"t{number}", partitions=[ask(partition_index=index, timestamp=0) for index in range(count)])
            for number, count in enumerate(counts)
        ],
    )


def answered(request: ListOffsetsRequest) -> ListOffsetsResponse:
    partition = Told.PartitionResponse
    return ListOffsetsResponse(
        topics=[
            Told(
                name=topic.name,
                partitions=[partition(partition_index=each.partition_index, error_code=0) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


NESTED = Portions("topics.partitions", "topics.partitions", 10)


@pytest.mark.parametrize("counts", [(3, 4), (100,), (1,) * 50, (0, 0, 25, 0, 1, 9, 10, 11), (9, 9, 9), (37, 2, 41)])
def test_what_is_divided_is_put_together_again(counts: tuple[int, ...]) -> None:
    request = asked(*counts)
    answer, seen = handled(NESTED, request, answered)
    assert answer == answered(request)
    for portion in seen:
        assert sum(1 + len(topic.partitions) for topic in portion.topics) <= 11
    assert len(seen) == 1 or sum(counts) + len(counts) > 10
    assert request == asked(*counts), "the request itself stays as it is"


def test_answers_that_come_later() -> None:
    def later(portion: ListOffsetsRequest) -> Any:
        promise: Later[ListOffsetsResponse] = Later()
        asyncio.get_running_loop().call_soon(promise.set, answered(portion))
        return promise

    request = asked(40, 3)
    assert handled(NESTED, request, later)[0] == answered(request)


def test_weights() -> None:
    portions = Portions("topics", "topics", 10, weigh=lambda topic: len(topic.partitions))
    answer, seen = handled(portions, asked(4, 4, 4, 50, 1), answered)
    assert [[len(topic.partitions) for topic in portion.topics] for portion in seen] == [[4, 4], [4], [50], [1]]
    assert answer == answered(asked(4, 4, 4, 50, 1))


def test_a_refusal_ends_it() -> None:
    def refuse(portion: ListOffsetsRequest) -> Any:
        if portion.topics[0].name != "t0":
            raise Disconnect("no")
        return answered(portion)

    with pytest.raises(Disconnect):
        handled(NESTED, asked(9, 9), refuse)
