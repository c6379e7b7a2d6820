"""What leaders ask of the controller, and where replicas say that they lie."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.server.replicas import FOLLOWER, LEADER, Channel, Pair, eventually, place, topic_id

from ottla.client.errors import RequestTimedOut
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ErrorCode
from ottla.replica.partition import Partition
from ottla.server.replication.isr_changes import IsrChanges
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.messages.cluster.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.messages.cluster.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

Given = AlterPartitionResponse.TopicData.PartitionData


def agree(request: AlterPartitionRequest) -> AlterPartitionResponse:
    return answer(request, lambda ask: ErrorCode.NONE)


def answer(request: AlterPartitionRequest, code: Callable[[Any], ErrorCode]) -> AlterPartitionResponse:
    topics = [
        AlterPartitionResponse.TopicData(
            topic_id=topic.topic_id,
            partitions=[
                Given(
                    partition_index=ask.partition_index,
                    error_code=code(ask),
                    leader_id=LEADER,
                    leader_epoch=ask.leader_epoch,
                    isr=[each.broker_id for each in ask.new_isr_with_epochs],
                    partition_epoch=ask.partition_epoch + 1,
                )
                for ask in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionResponse(error_code=ErrorCode.NONE, topics=topics)


class Leading:
    """A pair whose leader proposes to a controller of its own."""

    def __init__(self, partitions: int = 1, lag_ms: int = 30_000) -> None:
        self.pair = Pair({"replica.lag.time.max.ms": str(lag_ms)})
        self.pair.create("t", partitions)
        member = self.pair.leader.member
        self.channel = member.link = Channel()
        side = self.pair.leader
        self.changes = IsrChanges(side.runtime, side.configs, side.partitions, member.metadata, member.link)
        self.changes.start()
        self.asked: list[AlterPartitionRequest] = self.channel.asked

    def partition(self, index: int = 0) -> Partition:
        return self.pair.leader.partitions.find("t", index)

    def shrink(self, index: int = 0) -> None:
        change = journal.PartitionChangeRecord(partition_id=index, topic_id=topic_id("t"), isr=[LEADER])
        self.pair.apply(change)

    def isr(self, index: int = 0) -> tuple[int, ...]:
        in_sync = self.partition(index).in_sync
        assert in_sync is not None
        return in_sync.isr

    async def close(self) -> None:
        await self.changes.close()
        await self.pair.close()


async def caught_up(leading: Leading, index: int = 0) -> None:
    """The follower has everything and the leader would propose it."""
    leading.pair.leader.produce(index=index)
    partition = leading.partition(index)
    await eventually(lambda: partition in leading.pair.leader.considered, "the leader would have it in the ISR")


def test_a_follower_that_caught_up_joins_with_its_epoch() -> None:
    async def test() -> None:
        leading = Leading()
        leading.shrink()
        leading.channel.answer = agree
        await caught_up(leading)
        leading.changes.consider(leading.partition())
        await eventually(lambda: set(leading.isr()) == {LEADER, FOLLOWER})
        (request,) = leading.asked
        assert (request.broker_id, request.broker_epoch) == (LEADER, 11)
        (ask,) = request.topics[0].partitions
        assert {each.broker_id: each.broker_epoch for each in ask.new_isr_with_epochs} == {LEADER: 11, FOLLOWER: 12}
        await leading.close()

    asyncio.run(test())


def test_a_follower_joins_when_a_snapshot_tells_that_its_broker_is_back() -> None:
    """It caught up before its leader heard of it, and has nothing to fetch since: nobody else would look at it."""

    async def test() -> None:
        leading = Leading()
        leading.shrink()
        leading.channel.answer = agree
        pair, partition = leading.pair, leading.partition()
        pair.apply(journal.BrokerRegistrationChangeRecord(broker_id=FOLLOWER, broker_epoch=12, fenced=1))
        pair.leader.produce()
        assert partition.in_sync is not None
        follower = partition.in_sync.followers[FOLLOWER]
        await eventually(lambda: follower.log_end == partition.log.next_offset, "the follower has everything")
        replication = pair.leader.replicate()
        replication.start(pair.state)
        assert leading.isr() == (LEADER,)
        pair.state.apply(journal.BrokerRegistrationChangeRecord(broker_id=FOLLOWER, broker_epoch=12, fenced=-1))
        in_one_go(replication.reloading(pair.state))
        await eventually(lambda: set(leading.isr()) == {LEADER, FOLLOWER}, "the follower is in sync")
        await replication.close()
        await leading.close()

    asyncio.run(test())


def test_proposals_gather_while_one_is_under_way() -> None:
    async def test() -> None:
        leading = Leading(3)
        release = asyncio.Event()

        async def slowly(request: AlterPartitionRequest) -> AlterPartitionResponse:
            await release.wait()
            return agree(request)

        leading.channel.answer = slowly
        for index in range(3):
            leading.shrink(index)
            await caught_up(leading, index)
            leading.changes.consider(leading.partition(index))
            await asyncio.sleep(0)
        release.set()
        await eventually(lambda: all(len(leading.isr(index)) == 2 for index in range(3)))
        counts = [sum(len(topic.partitions) for topic in request.topics) for request in leading.asked]
        assert counts == [1, 2]
        await leading.close()

    asyncio.run(test())


def test_a_request_that_fails_is_sent_again_until_it_is_settled() -> None:
    async def test() -> None:
        leading = Leading()
        leading.shrink()
        failures: list[Any] = [
            RequestTimedOut("no controller"),
            AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[]),
        ]

        def unwilling(request: AlterPartitionRequest) -> AlterPartitionResponse:
            failure = failures.pop(0) if failures else agree(request)
            if isinstance(failure, Exception):
                raise failure
            return failure

        leading.channel.answer = unwilling
        await caught_up(leading)
        leading.changes.consider(leading.partition())
        await eventually(lambda: len(leading.isr()) == 2)
        assert len(leading.asked) == 3
        await leading.close()

    asyncio.run(test())


def test_a_proposal_that_the_answer_leaves_out_is_sent_again() -> None:
    async def test() -> None:
        leading = Leading()
        leading.shrink()

        def forgetful(request: AlterPartitionRequest) -> AlterPartitionResponse:
            return agree(request) if len(leading.asked) > 1 else AlterPartitionResponse(error_code=0, topics=[])

        leading.channel.answer = forgetful
        await caught_up(leading)
        leading.changes.consider(leading.partition())
        await eventually(lambda: len(leading.isr()) == 2)
        assert len(leading.asked) == 2
        await leading.close()

    asyncio.run(test())


def test_what_the_controller_refuses_ends_with_the_next_terms() -> None:
    async def test() -> None:
        leading = Leading()
        leading.shrink()
        leading.channel.answer = lambda request: answer(request, lambda ask: ErrorCode.INVALID_UPDATE_VERSION)
        await caught_up(leading)
        leading.changes.consider(leading.partition())
        await eventually(lambda: leading.asked)
        await asyncio.sleep(0.1)
        assert len(leading.asked) == 1
        in_sync = leading.partition().in_sync
        assert in_sync is not None
        assert in_sync.pending is not None
        leading.shrink()  # newer terms from the metadata
        in_sync = leading.partition().in_sync
        assert in_sync is not None
        assert in_sync.pending is None
        await leading.close()

    asyncio.run(test())


def test_a_follower_that_is_silent_leaves() -> None:
    async def test() -> None:
        leading = Leading(lag_ms=300)
        leading.channel.answer = agree
        leading.pair.leader.produce()
        await leading.pair.same()
        leading.pair.wire.cut()
        leading.pair.leader.produce()
        partition = leading.partition()
        assert partition.high_watermark == 1
        await eventually(lambda: leading.isr() == (LEADER,))
        assert partition.high_watermark == 2
        await leading.close()

    asyncio.run(test())


def settle(request: AssignReplicasToDirsRequest, codes: dict[int, ErrorCode]) -> AssignReplicasToDirsResponse:
    given = AssignReplicasToDirsResponse.DirectoryData
    return AssignReplicasToDirsResponse(
        error_code=ErrorCode.NONE,
        directories=[
            given(
                id=directory.id,
                topics=[
                    given.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            given.TopicData.PartitionData(
                                partition_index=each.partition_index,
                                error_code=codes.get(each.partition_index, ErrorCode.NONE),
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ],
    )


def test_the_controller_is_told_where_replicas_lie_until_it_agrees() -> None:
    async def test() -> None:
        pair = Pair(follower_disks=("one", "two"))
        refused = [{1: ErrorCode.UNKNOWN_SERVER_ERROR}, {}]
        pair.channel.answer = lambda request: settle(request, refused.pop(0))
        pair.create("t", 2)
        await eventually(lambda: len(pair.channel.asked) == 2)
        told = [
            {
                each.partition_index: directory.id
                for directory in request.directories
                for topic in directory.topics
                for each in topic.partitions
            }
            for request in pair.channel.asked
        ]
        where = {index: pair.follower.partitions.directory_of(place("t", index)) for index in range(2)}
        ids = {index: directory.id for index, directory in where.items() if directory is not None}
        assert len(set(ids.values())) == 2
        assert told == [ids, {1: ids[1]}]
        await pair.close()

    asyncio.run(test())
