"""Consumer groups under chaos: members that join, read, commit, leave and crash, and a watcher of the committed
offsets.

At the end a last member, which crashed members must not block for ever, reads and commits the rest.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.client.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.consumer.offsets import EARLIEST, LATEST, resolve
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.sim.group_check import GroupBook
from ottla.sim.process import ProcessSupervisor, WorkloadStage
from ottla.sim.workload import PATIENCE_SECONDS

GROUP_SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "500",
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
}


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The composition of a group."""

    name: str
    protocol: str  # "classic" or "consumer"
    assignors: tuple[str, ...]
    members: int
    static_members: int  # how many of the members are static
    life_seconds: float
    crash_rate: float

    def __str__(self) -> str:
        how = "/".join(self.assignors) if self.protocol == "classic" else "KIP-848"
        return f"group {self.name}: {how}, {self.members} members, {self.static_members} of them static"


def draw_group(rng: random.Random, name: str) -> GroupPlan:
    members = rng.randint(2, 4)
    return GroupPlan(
        name=name,
        protocol=rng.choice(("classic", "consumer")),
        assignors=rng.choice((("range",), ("cooperative-sticky",), ("range", "cooperative-sticky"))),
        members=members,
        static_members=rng.choice((0, 0, 1, members)),
        life_seconds=rng.choice((4.0, 10.0, 30.0)),
        crash_rate=rng.choice((0.3, 0.7)),
    )


def consumer_options(
    plan: GroupPlan, number: int | None, rng: random.Random, isolation: str = "read_uncommitted"
) -> ConsumerOptions:
    """Return the options of a member; `number` None: the last member."""
    static = number is not None and number < plan.static_members
    return ConsumerOptions(
        group_id=plan.name,
        group_instance_id=f"{plan.name}-{number}" if static else None,
        group_protocol=plan.protocol,
        assignors=plan.assignors,
        session_timeout_ms=rng.choice((6_000, 10_000)),
        heartbeat_interval_ms=1_000,
        max_poll_interval_ms=rng.choice((8_000, 20_000)),
        max_poll_records=rng.choice((1, 20, 500)),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level=isolation,
        fetch_max_wait_ms=rng.choice((50, 500)),
        max_partition_fetch_bytes=rng.choice((5_000, 100_000)),
    )


def identity(member: GroupMetadata) -> str:
    return member.group_instance_id or member.member_id


class CommitBook(Protocol):
    """An observer of a group's committed offsets."""

    @property
    def group(self) -> str: ...

    def floors(self) -> dict[TopicPartition, int]:
        """Return the offsets that are certainly committed now."""

    def found(self, offsets: Mapping[TopicPartition, int], floors: Mapping[TopicPartition, int]) -> None:
        """Note the coordinator's answer; `floors` is what was certain before the request."""


class GroupWatcher:
    """Asks for the committed offsets of a group again and again."""

    def __init__(self, stage: WorkloadStage, book: CommitBook) -> None:
        self._stage = stage
        self._book = book
        self._rng = stage.stream(f"watcher of {book.group}")
        self._process = stage.process(f"watcher-{book.group}")

    def start(self) -> asyncio.Task[None]:
        return self._process.start(self._run())

    async def _run(self) -> None:
        while True:
            try:
                async with Admin(self._stage.around.options("watcher", self._rng)) as admin:
                    while True:
                        await self._look(admin)
                        await asyncio.sleep(self._rng.uniform(0.2, 1.0))
            except (ClientError, ApiError) as error:
                self._stage.around.tell(f"the watcher of {self._book.group} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _look(self, admin: Admin) -> dict[TopicPartition, int]:
        floors = self._book.floors()
        places = await admin.groups.offsets(self._book.group, self._stage.around.partitions)
        found = {partition: place.offset for partition, place in places.items()}
        self._book.found(found, floors)
        return found

    async def last_look(self) -> dict[TopicPartition, int]:
        """Ask once more when all faults are over."""
        found: dict[TopicPartition, int] = {}

        async def look() -> None:
            nonlocal found
            deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
            while True:
                try:
                    async with Admin(self._stage.around.options("watcher", self._rng)) as admin:
                        found = await self._look(admin)
                    return
                except (ClientError, ApiError) as error:
                    if asyncio.get_running_loop().time() > deadline:
                        self._stage.around.history.blame(f"nobody knows what {self._book.group} committed: {error}")
                        return
                    await asyncio.sleep(1)

        await self._process.start(look())
        return found


class SimulatedMember:
    """One consumer of a group; `run` may end by cancellation or crash, and is run again."""

    def __init__(self, stage: WorkloadStage, plan: GroupPlan, book: GroupBook, number: int | None) -> None:
        self._around = stage.around
        self._plan = plan
        self._book = book
        self._number = number
        self._name = f"{plan.name}-{'last' if number is None else number}"
        self._rng = stage.stream(f"member {self._name}")
        self.until: dict[TopicPartition, int] | None = None  # where to stop

    async def run(self) -> None:
        while True:
            try:
                options = consumer_options(self._plan, self._number, self._rng)
                async with Consumer(self._around.options(self._name, self._rng), options) as consumer:
                    consumer.subscribe([self._around.partitions[0].topic], _Listener(self, consumer))
                    await self._consume(consumer)
                return
            except (ClientError, ApiError) as error:
                self._around.tell(f"{self._name} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _consume(self, consumer: Consumer) -> None:
        while True:
            got = await consumer.poll(timeout_ms=self._rng.choice((100, 1000)))
            for partition, records in got.items():
                for record in records:
                    self._around.history.read(partition, record.offset, record.value, None)
                    self._book.handed_out(partition, record.offset)
            if self._rng.random() < (0.6 if self.until is None else 1.0):
                await self.commit(consumer, consumer.assignment)
            if self.until is not None and self._is_done(consumer, self.until):
                return
            if self._rng.random() < 0.01:
                # slow processing, longer than some max.poll.interval.ms
                await asyncio.sleep(self._rng.choice((1.0, 12.0)))

    def _is_done(self, consumer: Consumer, until: dict[TopicPartition, int]) -> bool:
        """Whether it has read at least up to `until`; records with acks=1 may be committed late."""
        return all(
            partition in consumer.assignment and (consumer.position(partition) or 0) >= end
            for partition, end in until.items()
        )

    async def commit(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Commit the positions of these partitions; a failure because the group has rebalanced is no error here."""
        loop, member = asyncio.get_running_loop(), consumer.group_metadata()
        positions = {partition: consumer.position(partition) for partition in partitions}
        offsets = {partition: offset for partition, offset in positions.items() if offset is not None}
        if not offsets or member.generation_id < 0:
            return
        attempt = self._book.committing(identity(member), member.generation_id, offsets, loop.time())
        try:
            await consumer.commit(offsets)
        except (ClientError, ApiError) as error:
            self._around.tell(f"{self._name} could not commit: {error}")
        else:
            self._book.committed(attempt, loop.time())

    def assigned(self, consumer: Consumer) -> None:
        member = consumer.group_metadata()
        if member.generation_id >= 0:
            owned = consumer.assignment
            self._around.tell(f"{self._name} owns {[each.partition for each in owned]} in {member.generation_id}")
            self._book.assigned(identity(member), member.generation_id, owned)


class _Listener:
    """Commits when partitions are revoked, as good programs do."""

    def __init__(self, member: SimulatedMember, consumer: Consumer) -> None:
        self._member = member
        self._consumer = consumer

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._member.commit(self._consumer, partitions)

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._member.assigned(self._consumer)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Do nothing: lost partitions cannot be committed."""


class GroupWorkload:
    """A consumer group that reads the topic of the run."""

    def __init__(self, stage: WorkloadStage, plan: GroupPlan) -> None:
        self._stage = stage
        self._plan = plan
        self._book = GroupBook(plan.name, stage.around.history.blame, patience_seconds=5.0)
        self._watcher = GroupWatcher(stage, self._book)
        self._supervisor = ProcessSupervisor(stage, plan.life_seconds, plan.crash_rate)
        self._watching: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Do nothing: a group is created with its first member."""

    def start(self) -> None:
        for number in range(self._plan.members):
            member = SimulatedMember(self._stage, self._plan, self._book, number)
            self._supervisor.add(f"{self._plan.name}-{number}", member.run)
        self._watching = self._watcher.start()

    async def finish(self) -> None:
        await self._supervisor.end()
        bounds = await partition_bounds(self._stage)
        last = SimulatedMember(self._stage, self._plan, self._book, None)
        last.until = {partition: end for partition, (_, end) in bounds.items()}
        task = self._stage.process(f"{self._plan.name}-last").start(last.run())
        _, unfinished = await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        if unfinished:
            self._stage.around.history.blame(f"group {self._plan.name}: the last member does not come to an end")
            task.cancel()
        assert self._watching is not None
        self._watching.cancel()
        await asyncio.gather(task, self._watching, return_exceptions=True)
        if not task.cancelled() and task.exception() is not None:
            self._stage.around.history.blame(f"group {self._plan.name}: the last member failed: {task.exception()!r}")
        committed = await self._watcher.last_look()
        self._book.judge(committed, {partition: start for partition, (start, _) in bounds.items()})
        for partition, (start, end) in bounds.items():
            if end > start and committed.get(partition, -1) < end and not unfinished:
                self._stage.around.history.blame(
                    f"group {self._plan.name}: {partition} ends at {end}, committed is {committed.get(partition)}"
                )

    async def look(self) -> None:
        await self._watcher.last_look()

    def facts(self) -> dict[str, int]:
        return {
            f"{self._plan.name} commits": self._book.commits,
            f"{self._plan.name} generations": len(self._book.generations),
            f"{self._plan.name} crashes": self._supervisor.crashes,
        }


async def partition_bounds(stage: WorkloadStage) -> dict[TopicPartition, tuple[int, int]]:
    """Return the start and end offsets of the run's partitions, when all faults are over."""
    rng, found = stage.stream("bounds"), dict[TopicPartition, tuple[int, int]]()

    async def ask() -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            try:
                async with Admin(stage.around.options("bounds", rng)) as admin:
                    starts = await resolve(admin.cluster, [(each, EARLIEST) for each in stage.around.partitions])
                    ends = await resolve(admin.cluster, [(each, LATEST) for each in stage.around.partitions])
                for partition in stage.around.partitions:
                    found[partition] = starts[partition], ends[partition]
                return
            except (ClientError, ApiError):
                await asyncio.sleep(1)
        stage.around.history.blame("nobody knows where the partitions end although all faults are over")

    await stage.process("bounds").start(ask())
    return found
