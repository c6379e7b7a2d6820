"""Whatever happens to a group and to its members' requests: no record is passed over, and none is committed before its
handling.

Hypothesis drives two members of one group of a cluster in memory: polls and their cancellations, restarts, sessions
that end, members that do not poll for too long; and failures of every request, also of those whose effect stays. At the
end all faults are over, and everything has to be read and committed. `OTTLA_MEMBER_EXAMPLES` says how many histories
are tried.
"""

import asyncio
import os
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.client.memory_cluster import (
    HANG_UP,
    LEAVE_OUT,
    LOSE_ANSWER,
    SAY_NOTHING,
    MemoryBrokers,
    MemoryClient,
    What,
    run,
)
from tests.client.memory_groups import MemoryGroup
from tests.client.memory_reading import records_of

from ottla import ClientError, Consumer, ConsumerOptions, TopicPartition
from ottla.model.errors import ApiError, ErrorCode
from ottla.wire.message import Request
from ottla.wire.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

EXAMPLES = int(os.environ.get("OTTLA_MEMBER_EXAMPLES", "60"))
PARTITIONS = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
MEMBERS = (0, 1)
E = ErrorCode
_COORDINATOR: list[What] = [E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS]
FAULTS: dict[type[Request], list[What]] = {
    MetadataRequest: [E.LEADER_NOT_AVAILABLE],
    FindCoordinatorRequest: [E.COORDINATOR_NOT_AVAILABLE],
    JoinGroupRequest: [*_COORDINATOR, E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS, E.GROUP_AUTHORIZATION_FAILED],
    SyncGroupRequest: [*_COORDINATOR, E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS],
    HeartbeatRequest: [*_COORDINATOR, E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS],
    LeaveGroupRequest: _COORDINATOR,
    ConsumerGroupHeartbeatRequest: [
        *_COORDINATOR,
        E.FENCED_MEMBER_EPOCH,
        E.UNKNOWN_MEMBER_ID,
        E.GROUP_MAX_SIZE_REACHED,
    ],
    OffsetFetchRequest: [LEAVE_OUT, E.UNSTABLE_OFFSET_COMMIT, *_COORDINATOR],
    OffsetCommitRequest: [LEAVE_OUT, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS, E.UNKNOWN_MEMBER_ID, *_COORDINATOR],
    FetchRequest: [LEAVE_OUT, E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_SERVER_ERROR],
}


class Revoking:
    """A listener that takes a while; `partitions` are those that are being revoked meanwhile."""

    def __init__(self) -> None:
        self.partitions: Sequence[TopicPartition] = ()

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None: ...

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = partitions
        await asyncio.sleep(1.5)
        self.partitions = ()

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None: ...


class History:
    """The members of a group, the records that they were given, and those that they have handled."""

    def __init__(self, options: ConsumerOptions) -> None:
        self.options = options
        self.brokers = MemoryBrokers()
        self.brokers.group = MemoryGroup(options.group_protocol)
        self.brokers.fault, self.brokers.stored = self._fault, self._stored
        self.faults: list[list[Any]] = []
        self.handed: dict[TopicPartition, set[int]] = {each: set() for each in PARTITIONS}
        self.handled: dict[TopicPartition, set[int]] = {each: set() for each in PARTITIONS}
        self.in_hand: dict[int, list[tuple[TopicPartition, int]]] = {member: [] for member in MEMBERS}
        self.members: dict[int, Consumer] = {}
        self.listeners: dict[int, Revoking] = {}
        self.commits: list[asyncio.Future[Any]] = []  # nobody waits for them
        for name, count in (("a", 2), ("b", 1)):
            self.brokers.make(name, count)
        self.append(10)

    def append(self, count: int) -> None:
        for partition in PARTITIONS:
            self.brokers.log(partition).append(count)

    def _fault(self, request: Request) -> Any:
        for fault in self.faults:
            api, what, times = fault
            if isinstance(request, api) and times > 0:
                fault[2] -= 1
                return what, lambda partition: True
        return None

    def _stored(self, partition: TopicPartition, offset: int) -> None:
        gap = [at for at in range(offset) if at not in self.handled[partition]]
        assert not gap, f"{partition}: {offset} was committed, and {gap[0]} is not handled"
        before = self.brokers.committed.get(partition, 0)
        assert offset >= before, f"{partition}: {offset} was committed after {before}"

    def begin(self, member: int, cluster: MemoryClient) -> None:
        consumer = self.members[member] = Consumer(cluster, self.options)
        listener = self.listeners[member] = Revoking()
        consumer.subscribe(["a", "b"], listener)

    def _come_back(self, member: int) -> None:
        for partition, offset in self.in_hand[member]:
            self.handled[partition].add(offset)
        self.in_hand[member] = []

    async def poll(self, member: int, count: int, patience_s: float) -> None:
        self._come_back(member)
        await self._read(member, self.members[member].poll(max_records=count, timeout_ms=500), patience_s)

    async def arrow(self, member: int, linger_ms: float, patience_s: float) -> None:
        self._come_back(member)
        batches = self.members[member].arrow(rows_min=100, linger_ms=linger_ms)
        await self._read(member, anext(batches), patience_s)
        await batches.aclose()

    async def _read(self, member: int, reading: Awaitable[Any], patience_s: float) -> None:
        """Give up after a while; what comes all the same was handed out."""
        task = asyncio.ensure_future(reading)
        await asyncio.wait([task], timeout=patience_s)
        task.cancel()
        try:
            found = await task
        except (asyncio.CancelledError, ApiError, ClientError):
            return
        for record in records_of(found):
            partition = TopicPartition(record.topic, record.partition)
            assert partition not in self.listeners[member].partitions, f"{partition} is being revoked"
            gap = [at for at in range(record.offset) if at not in self.handed[partition]]
            assert not gap, f"{partition}: {record.offset} came, and {gap[0]} never did"
            self.handed[partition].add(record.offset)
            self.in_hand[member].append((partition, record.offset))

    async def close(self, member: int) -> None:
        self._come_back(member)  # it is closed in good order
        with suppress(ApiError, ClientError):
            await self.members.pop(member).close()

    async def step(self, action: tuple[Any, ...], cluster: MemoryClient) -> None:
        match action:
            case ("poll", member, count, patience_s) if member in self.members:
                await self.poll(member, count, patience_s)
            case ("arrow", member, linger_ms, patience_s) if member in self.members:
                await self.arrow(member, linger_ms, patience_s)
            case ("commit", member) if member in self.members:
                self._come_back(member)
                with suppress(ApiError, ClientError):
                    await self.members[member].commit()
            case ("commit meanwhile", member) if member in self.members:
                self._come_back(member)
                self.commits.append(asyncio.ensure_future(self.members[member].each.commit()))
                await asyncio.sleep(0.002)
            case ("close", member) if member in self.members:
                await self.close(member)
            case ("begin", member) if member not in self.members:
                self.begin(member, cluster)
            case ("forget", number):
                group = self.brokers.group
                assert group is not None
                for name in sorted(group.state.members)[number : number + 1]:
                    group.state.forget(name)
            case ("sleep", seconds):
                await asyncio.sleep(seconds)
            case ("fault", api, what, times):
                self.faults.append([api, what, times])
            case ("append", count):
                self.append(count)

    async def read_all(self, cluster: MemoryClient) -> None:
        """All faults are over: everything has to come, and to be committed."""
        self.faults.clear()
        self.append(2)
        ends = {each: self.brokers.log(each).end for each in PARTITIONS}
        for member in MEMBERS:
            await self.step(("begin", member), cluster)
        for _ in range(300):
            for member in MEMBERS:
                await self.poll(member, 50, 60.0)
            if self.brokers.committed == ends:
                break
        assert self.brokers.committed == ends, [each.failures() for each in self.members.values()]


def actions() -> "st.SearchStrategy[Any]":
    members, patience = st.sampled_from(MEMBERS), st.sampled_from([0.0, 0.002, 0.01, 1.0, 60.0])
    faults = st.sampled_from(
        [(api, what) for api, some in FAULTS.items() for what in [HANG_UP, SAY_NOTHING, LOSE_ANSWER, *some]]
    )
    poll = st.tuples(st.just("poll"), members, st.integers(1, 20), patience)
    return st.one_of(
        poll,
        poll,
        poll,
        st.tuples(st.just("arrow"), members, st.sampled_from([20, 1_500]), patience),
        st.tuples(st.just("commit"), members),
        st.tuples(st.just("commit meanwhile"), members),
        st.tuples(st.just("close"), members),
        st.tuples(st.just("begin"), members),
        st.tuples(st.just("forget"), members),
        st.tuples(st.just("sleep"), st.sampled_from([0.01, 0.3, 4.0, 40.0])),
        st.builds(lambda fault, times: ("fault", *fault, times), faults, st.integers(1, 3)),
        st.tuples(st.just("append"), st.integers(1, 5)),
    )


# One member reads by itself; then another joins, and the first gathers records while it has to give partitions up.
GATHERED = [("append", 3), ("arrow", 0, 1_500, 60.0)]
SHARED = [*[("poll", 0, 20, 60.0)] * 4, ("poll", 1, 20, 1.0), *GATHERED, ("poll", 1, 20, 0.01), *GATHERED * 2]


@pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(actions(), max_size=30))
@example(SHARED)
@example([("sleep", 0.3), *SHARED])
def test_no_record_is_passed_over_or_committed_before_it_is_handled(kind: str, history: list[tuple[Any, ...]]) -> None:
    options = ConsumerOptions(
        group_id="g",
        group_protocol="consumer" if kind == "consumer" else "classic",
        assignors=("range",) if kind == "consumer" else (kind,),
        auto_offset_reset="earliest",
        heartbeat_interval_ms=1_000,
        session_timeout_ms=10_000,
        max_poll_interval_ms=30_000,
        fetch_max_wait_ms=100,
        auto_commit_interval_ms=200,
        max_partition_fetch_bytes=300,
    )

    async def test() -> None:
        it = History(options)
        async with MemoryClient(it.brokers) as cluster:
            for member in MEMBERS:
                it.begin(member, cluster)
            try:
                for action in history:
                    await it.step(action, cluster)
                await it.read_all(cluster)
            finally:
                for member in list(it.members):
                    await it.close(member)
                await asyncio.gather(*it.commits)

    run(test, seconds=1_000_000)
