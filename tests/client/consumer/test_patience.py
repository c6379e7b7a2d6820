"""One operation has one time-out: the calls that it is made of have what is left of it."""

import asyncio

import pytest
from tests.client.memory_cluster import MemoryBrokers, MemoryClient, run

from ottla import ApiError, Consumer, ConsumerOptions, TopicPartition
from ottla.model.errors import ErrorCode
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
TIMEOUT_S = 60.0
LONGEST_S = TIMEOUT_S + 1  # the last answer takes a moment, too


def two_topics() -> MemoryBrokers:
    brokers = MemoryBrokers()
    for partition in (A, B):
        brokers.make(partition.topic, 1)
        brokers.log(partition).append(10)
    return brokers


@pytest.mark.parametrize("concerned", [{A}, {A, B}])
def test_offsets_whose_coordinator_does_not_get_ready(concerned: set[TopicPartition]) -> None:
    """Where the coordinator said it of all partitions, it took two time-outs, one inside the other."""

    async def test() -> None:
        brokers, loop = two_topics(), asyncio.get_running_loop()
        asked: tuple[type, ...] = (OffsetCommitRequest, OffsetFetchRequest)
        brokers.fault = lambda request: (LOADING, concerned.__contains__) if isinstance(request, asked) else None
        options = ConsumerOptions(group_id="g", enable_auto_commit=False)
        async with MemoryClient(brokers, api_timeout_ms=TIMEOUT_S * 1000) as cluster, Consumer(cluster, options) as one:
            one.assign([A, B])
            begun_s = loop.time()
            outcomes = await one.each.commit({A: 5, B: 5})
            assert outcomes.failed.keys() == concerned and loop.time() - begun_s < LONGEST_S
            begun_s = loop.time()
            assert (await one.each.committed([A, B])).failed.keys() == concerned and loop.time() - begun_s < LONGEST_S

    run(test)


def test_what_others_wait_for_as_well_has_a_time_of_its_own() -> None:
    """An operation that is nearly over asks for a topic: whoever joins it in that is not over as soon."""

    async def test() -> None:
        brokers, loop = two_topics(), asyncio.get_running_loop()
        async with MemoryClient(brokers, api_timeout_ms=TIMEOUT_S * 1000) as cluster:
            await cluster.refresh()
            absent = (ErrorCode.LEADER_NOT_AVAILABLE, lambda partition: True)
            brokers.fault = lambda request: absent if isinstance(request, MetadataRequest) else None
            begun_s = loop.time()
            with cluster.patience():
                await asyncio.sleep(TIMEOUT_S - 1)
                asking = asyncio.create_task(cluster.topic("a"))
                await asyncio.sleep(0)
            with pytest.raises(ApiError):
                await cluster.topic("a")
            with pytest.raises(ApiError):
                await asking
            assert loop.time() - begun_s > 1.5 * TIMEOUT_S

    run(test)
