"""A broker that dies at every single disk operation of a transaction's end: all of it counts in the end, or nothing.

Two partitions and a group's offsets take part. The crash strikes inside the first, second, third … operation after
EndTxn was sent, until the end comes without one: while the decision is written, between two markers, before the last
record. A producer that asks again gets its way; if it never does, what was decided stands, and else the clock aborts.
"""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from ottla.client.connection import Address, Connection
from ottla.client.errors import ClientError
from ottla.records.batch import headers
from ottla.records.build import build_batch
from ottla.records.record import records
from ottla.sim.cluster import SimMachine
from ottla.sim.world.disk import Crash
from ottla.sim.world.loop import SimLoop
from ottla.sim.world.net import SimNet
from ottla.wire.message import Request, Response
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.txns.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txns.txn_offset_commit import TxnOffsetCommitRequest

ID, GROUP, TOPIC = "x", "g", "t"
OFFSET = 41
PATIENCE_S = 120
OPERATIONS_MAX = 60
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
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
R = TypeVar("R", bound=Response)


class Client:
    """Asks until it is answered, over as many connections as that takes."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Connection | None = None

    async def ask(self, request: Request[R], version: int) -> R:
        while True:
            try:
                return await self.once(request, version)
            except ClientError:
                await asyncio.sleep(0.2)

    async def once(self, request: Request[R], version: int) -> R:
        if self._connection is None or not self._connection.is_open:
            self._connection = await Connection.open(self._address, connect_timeout_ms=1000)
        return await self._connection.request(request, version=version, timeout_ms=5000)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class Trial:
    """One transaction, one crash."""

    def __init__(self, machine: SimMachine, *, commit: bool, bumps: bool, insists: bool) -> None:
        self.machine = machine
        self.commit, self.bumps, self.insists = commit, bumps, insists
        self.client = Client(machine.address)
        self.acknowledged = False
        self.struck = False

    async def run(self, kind: Crash, operations: int) -> None:
        await self.prepare()
        (disk,) = self.machine.disks.values()
        disk.crash_within(operations, lambda: self.strike(kind))
        await self.end()
        state = await self.rest()
        disk.crash_never()
        self.judge(state, [await self.read(index) for index in (0, 1)], await self.offset())
        self.client.close()

    def strike(self, kind: Crash) -> None:
        self.struck = True
        self.machine.crash(kind)

    async def prepare(self) -> None:
        ask = self.client.ask
        for key_type, key in ((1, ID), (0, GROUP)):
            found = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            assert (await ask(found, 6)).coordinators[0].error_code == 0
        topic = CreateTopicsRequest.CreatableTopic
        wanted = topic(name=TOPIC, num_partitions=2, replication_factor=1, assignments=[], configs=[])
        assert (await ask(CreateTopicsRequest(topics=[wanted]), 7)).topics[0].error_code == 0
        begun = await ask(InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=10_000), 5)
        assert begun.error_code == 0
        self.producer = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        await self.fill()

    async def fill(self) -> None:
        ask, producer = self.client.ask, self.producer
        if not self.bumps:
            added = await ask(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=ID,
                    v3_and_below_producer_id=producer["producer_id"],
                    v3_and_below_producer_epoch=producer["producer_epoch"],
                    v3_and_below_topics=[Topic(name=TOPIC, partitions=[0, 1])],
                ),
                3,
            )
            assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
            group = AddOffsetsToTxnRequest(transactional_id=ID, group_id=GROUP, **producer)
            assert (await ask(group, 3)).error_code == 0
        data = ProduceRequest.TopicProduceData
        batch = bytes(build_batch([(b"k", b"v")], timestamp=1, base_sequence=0, transactional=True, **producer))
        partitions = [data.PartitionProduceData(index=index, records=batch) for index in (0, 1)]
        produced = await ask(
            ProduceRequest(
                transactional_id=ID,
                acks=-1,
                timeout_ms=5000,
                topic_data=[data(name=TOPIC, partition_data=partitions)],
            ),
            12 if self.bumps else 11,
        )
        assert [each.error_code for each in produced.responses[0].partition_responses] == [0, 0]
        offsets = TxnOffsetCommitRequest.Topic
        kept = offsets.Partition(partition_index=0, committed_offset=OFFSET, committed_metadata="")
        committed = await ask(
            TxnOffsetCommitRequest(
                transactional_id=ID, group_id=GROUP, topics=[offsets(name=TOPIC, partitions=[kept])], **producer
            ),
            5 if self.bumps else 3,
        )
        assert committed.topics[0].partitions[0].error_code == 0

    async def end(self) -> None:
        request = EndTxnRequest(transactional_id=ID, committed=self.commit, **self.producer)
        version = 5 if self.bumps else 3
        try:
            answer = await self.client.once(request, version)
        except ClientError:
            answer = None
        while self.insists and (answer is None or answer.error_code):
            await asyncio.sleep(0.5)
            answer = await self.client.ask(request, version)
            assert answer.error_code in (0, 14, 15, 16, 51), answer  # loading, not there, concurrent
        self.acknowledged = answer is not None and answer.error_code == 0

    async def rest(self) -> str:
        for _ in range(PATIENCE_S):
            asked = DescribeTransactionsRequest(transactional_ids=[ID])
            (found,) = (await self.client.ask(asked, 0)).transaction_states
            if found.transaction_state.startswith("Complete"):
                return found.transaction_state
            await asyncio.sleep(1)
        raise AssertionError(f"the transaction does not come to rest: {found}")

    async def read(self, index: int) -> list[bytes | None]:
        """As a reader of what is committed."""
        part = FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=1,
            topics=[FetchRequest.Topic(topic=TOPIC, partitions=[part])],
        )
        (found,) = (await self.client.ask(request, 12)).responses[0].partitions
        assert found.error_code == 0
        assert found.last_stable_offset == found.high_watermark, "the transaction is open still"
        aborted = {each.producer_id for each in found.aborted_transactions or ()}
        view = memoryview(bytes(found.records or b""))
        return [
            record.value
            for at, header in headers(view)
            if not header.is_control and header.producer_id not in aborted
            for record in records(view, at)
        ]

    async def offset(self) -> int:
        group = OffsetFetchRequest.Group(
            group_id=GROUP, topics=[OffsetFetchRequest.Group.Topics(name=TOPIC, partition_indexes=[0])]
        )
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        while True:
            (found,) = (await self.client.ask(request, 9)).groups
            if found.error_code == 0:
                break
            await asyncio.sleep(0.2)
        assert found.topics[0].partitions[0].error_code == 0, "the offset is undecided still"
        return int(found.topics[0].partitions[0].committed_offset)

    def judge(self, state: str, values: list[list[bytes | None]], offset: int) -> None:
        committed = state == "CompleteCommit"
        assert values == ([[b"v"], [b"v"]] if committed else [[], []])
        assert offset == (OFFSET if committed else -1)
        if self.acknowledged:
            assert committed == self.commit


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


@pytest.mark.parametrize("insists", [True, False], ids=["asks again", "is silent"])
@pytest.mark.parametrize("bumps", [True, False], ids=["KIP-890", "before"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("kind", [Crash.PROCESS, Crash.POWER], ids=["kill", "power"])
def test_all_or_nothing(kind: Crash, commit: bool, bumps: bool, insists: bool) -> None:
    settings = SETTINGS | ({"ottla.fsync.before.ack": "true"} if kind is Crash.POWER else {})
    for operations in range(1, OPERATIONS_MAX):
        loop = SimLoop(random.Random(operations))
        machine = SimMachine(
            "node-0", SimNet(loop, random.Random(operations)), settings, random.Random(operations), lambda _: None
        )
        trial = Trial(machine, commit=commit, bumps=bumps, insists=insists)
        run(trial.run(kind, operations), machine)
        if not trial.struck:
            assert operations > 5, "a transaction's end takes at least so many operations"
            return
    raise AssertionError("the transaction's end never came without a crash")
