"""The time of day of a running node is set, an hour forward and back: no session, transaction or lock ends for it.

And none lasts longer: what is over by the time that passed is over, whatever the clock on the wall shows.
"""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from ottla.client.connection import Connection
from ottla.records.build import build_batch
from ottla.sim.cluster import SimMachine
from ottla.sim.world.loop import SimLoop
from ottla.sim.world.net import SimNet
from ottla.wire.message import Request, Response
from ottla.wire.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest

HOUR_MS = 3_600_000
UNKNOWN_MEMBER = 25
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "0",
    "listeners": "PLAINTEXT://:9092",
    "log.dirs": "data",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": "45000",
}
R = TypeVar("R", bound=Response)


class Visitor:
    """A member of a classic group and of one by KIP-848, with an open transaction; each times out after 45 s."""

    def __init__(self, machine: SimMachine) -> None:
        self.machine = machine

    async def ask(self, request: Request[R], version: int) -> R:
        return await self.connection.request(request, version=version, timeout_ms=10_000)

    async def settle(self) -> None:
        self.connection = await Connection.open(self.machine.address, connect_timeout_ms=1000)
        for key_type, key in ((1, "tx"), (0, "old")):
            found = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            assert (await self.ask(found, 6)).coordinators[0].error_code == 0
        topic = CreateTopicsRequest.CreatableTopic
        wanted = topic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        assert (await self.ask(CreateTopicsRequest(topics=[wanted]), 7)).topics[0].error_code == 0
        join = JoinGroupRequest(
            group_id="old",
            session_timeout_ms=45_000,
            rebalance_timeout_ms=45_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
        )
        joined = await self.ask(join, 3)
        assert joined.error_code == 0
        self.member = {
            "group_id": "old",
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
        }
        synced = await self.ask(SyncGroupRequest(assignments=[], **self.member), 3)
        assert synced.error_code == 0
        self.epoch = 0
        assert await self.beat() == (0, 0)

    async def beat(self) -> tuple[int, int]:
        """The error codes of both heartbeats."""
        old = await self.ask(HeartbeatRequest(**self.member), 3)
        first = self.epoch == 0
        new = await self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="new",
                member_id="anna",
                member_epoch=self.epoch,
                rebalance_timeout_ms=45_000 if first else -1,
                subscribed_topic_names=["t"] if first else None,
                topic_partitions=[] if first else None,
            ),
            1,
        )
        self.epoch = new.member_epoch or self.epoch
        return old.error_code, new.error_code

    async def begin(self, timeout_ms: int) -> None:
        begun = await self.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=timeout_ms), 4)
        assert begun.error_code == 0
        self.producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        added = await self.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="tx",
                v3_and_below_producer_id=begun.producer_id,
                v3_and_below_producer_epoch=begun.producer_epoch,
                v3_and_below_topics=[Topic(name="t", partitions=[0])],
            ),
            3,
        )
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        data = ProduceRequest.TopicProduceData
        batch = bytes(build_batch([(b"k", b"v")], timestamp=1, base_sequence=0, transactional=True, **self.producer))
        part = data.PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id="tx", acks=-1, timeout_ms=5000, topic_data=[data(name="t", partition_data=[part])]
        )
        produced = await self.ask(request, 11)
        assert produced.responses[0].partition_responses[0].error_code == 0

    async def state(self) -> str:
        asked = DescribeTransactionsRequest(transactional_ids=["tx"])
        (found,) = (await self.ask(asked, 0)).transaction_states
        return found.transaction_state

    async def commit(self) -> int:
        request = EndTxnRequest(transactional_id="tx", committed=True, **self.producer)
        return (await self.ask(request, 3)).error_code


def run(work: Coroutine[Any, Any, None], machine: SimMachine) -> None:
    async def main() -> None:
        supervisor = asyncio.ensure_future(machine.supervise())
        await machine.wait_until_ready()
        try:
            await machine.loop.task_of(machine.net.add_host("client"), work)
        finally:
            await machine.retire()
            await supervisor

    machine.loop.run_until_complete(main())
    failures, errors = machine.failures, machine.loop.errors
    machine.loop.bury()
    assert not failures
    assert not errors


@pytest.mark.parametrize("steps_ms", [(HOUR_MS, -HOUR_MS), (-HOUR_MS, HOUR_MS)], ids=["forward", "back"])
def test_nothing_ends_early_and_nothing_late(steps_ms: tuple[int, int]) -> None:
    loop = SimLoop(random.Random(1))
    machine = SimMachine("node-0", SimNet(loop, random.Random(1)), SETTINGS, random.Random(1), lambda _: None)
    visitor = Visitor(machine)

    async def live() -> None:
        await visitor.settle()
        await visitor.begin(timeout_ms=45_000)
        for step_ms in steps_ms:
            machine.clock.error_ms += step_ms
            await asyncio.sleep(15)  # twice what Kafka waits between two looks at transactions
            assert await visitor.beat() == (0, 0), f"after a step of {step_ms} ms"
            assert await visitor.state() == "Ongoing"
        assert await visitor.commit() == 0
        await visitor.begin(timeout_ms=20_000)
        assert await visitor.beat() == (0, 0)
        machine.clock.error_ms += steps_ms[1]  # an hour away, for good
        await asyncio.sleep(44)
        assert (await visitor.beat())[0] == 0, "not yet"
        assert await visitor.state() == "CompleteAbort", "it had 20 s"
        await asyncio.sleep(46)
        assert await visitor.beat() == (UNKNOWN_MEMBER, UNKNOWN_MEMBER)
        visitor.connection.close()

    run(live(), machine)
