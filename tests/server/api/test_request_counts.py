"""Counts of requests: the error codes in every kind of answer, and where the time of a request counts."""

from __future__ import annotations

from ottla.server.api.request_counts import RequestCounts, finders_of_errors
from ottla.wire.messages.cluster.api_versions import ApiVersionsResponse
from ottla.wire.messages.groups.heartbeat import HeartbeatResponse
from ottla.wire.messages.records.produce import ProduceResponse

_Topic = ProduceResponse.TopicProduceResponse
_Partition = _Topic.PartitionProduceResponse


def produced(*codes: int) -> ProduceResponse:
    answers = [_Partition(index=index, error_code=code, base_offset=0) for index, code in enumerate(codes)]
    return ProduceResponse(responses=[_Topic(name="t", partition_responses=answers)])


def test_errors_of_items_and_of_the_whole() -> None:
    counts = RequestCounts()
    produce = counts.of("Produce", 9, ProduceResponse)
    for answer in (produced(0, 0), produced(0, 3, 3, 19), produced()):
        if produce.fails(answer):
            produce.failed(answer)
    assert produce.errors == {3: 2, 19: 1}
    assert produce.failing == 1, "one answer has three errors"
    beat = counts.of("Heartbeat", 4, HeartbeatResponse)
    beat.failed(HeartbeatResponse(error_code=27))
    assert beat.errors == {27: 1}


def test_lists_that_are_null() -> None:
    found: list[int] = []
    finders_of_errors(ApiVersionsResponse).codes(ApiVersionsResponse(error_code=35, api_keys=[]), found.append)
    assert found == [35]


def test_an_answer_that_waits() -> None:
    counts = RequestCounts().of("Produce", 9, ProduceResponse)
    counts.answered(produced(6, 6), 0.25, 0.05)
    assert counts.errors == {6: 2}
    assert counts.failing == 1
    assert (counts.waited.all.count, counts.waited.all.sum) == (1, 250_000)
    assert (counts.remote.all.count, counts.remote.all.sum) == (1, 200_000)


def test_listeners_share_the_counts_of_an_api() -> None:
    counts = RequestCounts()
    first = counts.of("Produce", 9, ProduceResponse)
    assert counts.of("Produce", 9, ProduceResponse) is first
    assert counts.of("Produce", 10, ProduceResponse) is not first
