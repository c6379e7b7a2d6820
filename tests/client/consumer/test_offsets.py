"""Offsets by time: an outcome per partition, whatever is wrong with the others."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.client.partitions import ScriptedPartitions
from tests.client.scripted import CLOSE, ScriptedBroker
from tests.support.waiting import WAIT_S

from ottla.client.cluster import Cluster
from ottla.client.consumer.offsets import (
    EARLIEST,
    LATEST,
    PartitionBounds,
    Time,
    bounds_each,
    list_offsets_each,
    resolve,
    resolve_each,
)
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

HERE, BESIDE, NOWHERE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("nope", 0)


def run(test: Callable[[ScriptedPartitions, Cluster, ScriptedBroker], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker, 2)
            logs.ends[0], logs.ends[1] = 7, 9
            options = ClientOptions(parse_bootstrap(broker.bootstrap), retry_backoff_ms=1, api_timeout_ms=500)
            async with Cluster(options) as cluster:
                await test(logs, cluster, broker)

    asyncio.run(main())


def failing(broker: ScriptedBroker, index: int, codes: list[ErrorCode]) -> None:
    """One partition's next answers are these."""
    whole = broker.answers[ListOffsetsRequest]

    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = whole(request, version)
        for each in found.topics[0].partitions:
            if each.partition_index == index and codes:
                each.error_code, each.offset = int(codes.pop(0)), -1
        return found

    broker.answers[ListOffsetsRequest] = answer


def test_a_missing_topic_takes_nothing_from_the_others() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        wanted = [(NOWHERE, LATEST), (HERE, LATEST), (BESIDE, 3)]
        outcomes = await resolve_each(cluster, wanted)
        assert outcomes.found == {HERE: 7, BESIDE: 3}
        assert [*outcomes.failed] == [NOWHERE]
        with pytest.raises(ApiError, match="nope-0: there is no topic 'nope'"):
            await resolve(cluster, wanted)

    run(test)


def test_what_passes_is_asked_again_without_the_others() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        failing(broker, 1, [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE])
        outcomes = await list_offsets_each(cluster, {HERE: LATEST, BESIDE: LATEST})
        assert {each: at.offset for each, at in outcomes.found.items()} == {HERE: 7, BESIDE: 9}
        asked = [[each.partition_index for each in it.topics[0].partitions] for it in broker.of(ListOffsetsRequest)]
        assert asked == [[0, 1], [1], [1]]

    run(test)


def test_what_does_not_pass_is_told_at_the_end() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        failing(broker, 0, [ErrorCode.TOPIC_AUTHORIZATION_FAILED])
        outcomes = await resolve_each(cluster, [(HERE, EARLIEST), (BESIDE, Time(5_000))])
        assert outcomes.found == {BESIDE: 9}, "nothing is that late: the end"
        assert [error.code for error in outcomes.failed.values()] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]  # type: ignore[attr-defined]
        failing(broker, 1, [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100_000)
        bounds = await bounds_each(cluster, [HERE, BESIDE])
        assert (bounds.found, [*bounds.failed]) == ({HERE: PartitionBounds(0, 7)}, [BESIDE])

    run(test)


def test_a_broker_that_hangs_up_fails_its_partitions() -> None:
    async def test(logs: ScriptedPartitions, cluster: Cluster, broker: ScriptedBroker) -> None:
        broker.answers[ListOffsetsRequest] = lambda request: CLOSE
        outcomes = await list_offsets_each(cluster, {HERE: LATEST, NOWHERE: LATEST})
        assert not outcomes.found
        assert {*outcomes.failed} == {HERE, NOWHERE}

    run(test)
