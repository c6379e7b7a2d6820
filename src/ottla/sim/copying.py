"""Copying under chaos: members of a group read the topic of the run and write what they read into another topic,
records and offsets in one transaction.

They crash in the middle, take too long (the coordinator aborts), abort themselves, and sometimes a twin with the same
transactional id takes over. In the end every record must have been copied exactly once, by content, and the copies must
match the committed offsets. The `Ledger` checks what holds for any transaction.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ottla.client.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.sim.check import Payload, decode_payload
from ottla.sim.group_check import GroupBook
from ottla.sim.grouping import GroupPlan, GroupWatcher, consumer_options, draw_group, identity, partition_bounds
from ottla.sim.ledger import CommittedReader, Found, Ledger, TransactionName, read_all_committed
from ottla.sim.process import ProcessSupervisor, WorkloadStage
from ottla.sim.transactional import Changed, transactional_producer
from ottla.sim.workload import PATIENCE_SECONDS, Surroundings

TARGET = "copies"
TRANSACTION_TIMEOUT_MS = 8_000

Batch = Mapping[TopicPartition, list[ConsumedRecord]]


@dataclass(frozen=True, slots=True)
class CopyPlan:
    group: GroupPlan
    partitions: int  # of the target topic
    twins: int

    def __str__(self) -> str:
        return f"copiers into {self.partitions} partitions with {self.twins} twins, {self.group}"


def draw_copying(rng: random.Random) -> CopyPlan:
    group = replace(draw_group(rng, "copiers"), members=rng.randint(1, 3))
    return CopyPlan(group=group, partitions=rng.randint(1, 3), twins=rng.choice((0, 0, 1)))


def copy_of(name: TransactionName, number: int, record: ConsumedRecord) -> bytes:
    """Return a record of a transaction that names the record it is a copy of."""
    payload = decode_payload(record.value)
    what = " ".join(str(each) for each in payload) if payload is not None else "damaged"
    return name.value(number) + f" {record.partition} {record.offset} {what}".encode()


class CopyBook:
    """Checks the copies by their content."""

    def __init__(self, source: tuple[TopicPartition, ...]) -> None:
        self._source = {partition.partition: partition for partition in source}

    def judge(
        self,
        found: Found,
        committed: Mapping[TopicPartition, int],
        content: Mapping[TopicPartition, Mapping[int, Payload]],
        starts: Mapping[TopicPartition, int],
    ) -> list[str]:
        """Return what is wrong. `content` holds the source's records by offset, `starts` are its log starts."""
        wrong: list[str] = []
        copies: dict[TopicPartition, dict[int, Payload | None]] = {each: {} for each in self._source.values()}
        for records in found.values():
            for _, value in records:
                index, offset, *payload = (value or b"").split()[3:]
                partition = self._source[int(index)]
                if int(offset) in copies[partition]:
                    wrong.append(f"{partition}: offset {int(offset)} was copied twice")
                copies[partition][int(offset)] = Payload(*map(int, payload)) if len(payload) == 3 else None
        for partition, copied in copies.items():
            end = committed.get(partition, 0)
            early = [offset for offset in copied if offset >= end]
            if early:
                wrong.append(f"{partition}: {early[:5]} were copied, but committed is {end}")
            missing = [
                offset for offset in content[partition] if starts[partition] <= offset < end and offset not in copied
            ]
            if missing:
                wrong.append(f"{partition}: {missing[:5]} were not copied, but committed is {end}")
            changed = [
                offset
                for offset, payload in copied.items()
                if offset in content[partition] and content[partition][offset] != payload
            ]
            if changed:
                wrong.append(f"{partition}: the copies of {changed[:5]} are not what they are copies of")
        return wrong


class Copier:
    """One process with a consumer of the group and a transactional producer."""

    def __init__(self, workload: CopyWorkload, number: int, name: str, *, last: bool = False) -> None:
        self._workload = workload
        self._around = workload.stage.around
        self._number = number
        self._name = name
        self._last = last
        self._rng = workload.stage.stream(name)
        self.until: dict[TopicPartition, int] | None = None

    async def run(self) -> None:
        while True:
            try:
                member = None if self._last or "twin" in self._name else self._number
                isolation = self._rng.choice(("read_committed", "read_uncommitted"))
                options = consumer_options(self._workload.plan.group, member, self._rng, isolation)
                async with (
                    self._producer() as producer,
                    Consumer(self._around.options(self._name, self._rng), options) as consumer,
                ):
                    await producer.init_transactions()
                    consumer.subscribe([self._around.partitions[0].topic])
                    await self._copy_all(producer, consumer)
                return
            except (ClientError, ApiError) as error:
                self._around.tell(f"{self._name} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    def _producer(self) -> Producer:
        return transactional_producer(
            self._around, self._name, f"copier-{self._number}", TRANSACTION_TIMEOUT_MS, self._rng
        )

    async def _copy_all(self, producer: Producer, consumer: Consumer) -> None:
        while True:
            got = await consumer.poll(max_records=self._rng.randint(1, 30), timeout_ms=500)
            if got:
                await self._copy(producer, consumer, got)
            if self.until is not None and self._workload.watched(self.until):
                return

    async def _copy(self, producer: Producer, consumer: Consumer, got: Batch) -> None:
        workload, rng, member = self._workload, self._rng, consumer.group_metadata()
        name = workload.next_name(self._number)
        offsets = {partition: records[-1].offset + 1 for partition, records in got.items()}
        attempt = workload.book.committing(identity(member), member.generation_id, offsets, 0.0)
        try:
            async with producer.transaction() as transaction:
                for record in (record for records in got.values() for record in records):
                    await self._write(producer, name, record)
                await transaction.send_offsets(offsets, member)
                await self._hesitate()
                del workload.ledger.refused[name]  # from here on the outcome is unknown until the producer reports it
        except Changed:
            workload.book.withdrawn(attempt)
            for partition in [each for each in got if each in consumer.assignment]:
                consumer.seek(partition, got[partition][0].offset)
            return
        workload.ledger.committed[name] = None
        workload.book.committed(attempt, 0.0)
        for partition, records in got.items():
            for record in records:
                self._around.history.read(partition, record.offset, record.value, None)
        if rng.random() < 0.1:
            await asyncio.sleep(rng.expovariate(2))

    async def _write(self, producer: Producer, name: TransactionName, record: ConsumedRecord) -> None:
        written = self._workload.ledger.written[name]
        target = self._rng.choice(self._workload.targets)
        number = len(written)
        written[number] = target
        await producer.enqueue(target.topic, copy_of(name, number, record), partition=target.partition)

    async def _hesitate(self) -> None:
        if self._last:
            return
        chance = self._rng.random()
        if chance < 0.05:
            raise Changed
        if chance < 0.08:
            await asyncio.sleep(TRANSACTION_TIMEOUT_MS / 1000 * self._rng.uniform(0.9, 1.5))
        elif chance < 0.3:
            await asyncio.sleep(self._rng.expovariate(5))


class CopyWorkload:
    """The copiers, a reader of their copies, and a watcher of their committed offsets."""

    def __init__(self, stage: WorkloadStage, plan: CopyPlan) -> None:
        self.stage = stage
        self.plan = plan
        self.ledger = Ledger()
        self.targets = tuple(TopicPartition(TARGET, index) for index in range(plan.partitions))
        self.book = GroupBook(plan.group.name, stage.around.history.blame, patience_seconds=math.inf)
        self._watcher = GroupWatcher(stage, self.book)
        self._supervisor = ProcessSupervisor(stage, plan.group.life_seconds, plan.group.crash_rate)
        self._tasks: list[asyncio.Task[None]] = []
        self._names: dict[int, int] = {}
        self._starts: dict[TopicPartition, int] = {}

    @property
    def target_surroundings(self) -> Surroundings:
        return replace(self.stage.around, partitions=self.targets)

    def next_name(self, number: int) -> TransactionName:
        self._names[number] = self._names.get(number, 0) + 1
        name = TransactionName(number, self._names[number])
        self.ledger.begin(name)
        return name

    def watched(self, until: Mapping[TopicPartition, int]) -> bool:
        """Whether these offsets are known to be committed."""
        return all(end == 0 or self.book.floors().get(partition, 0) >= end for partition, end in until.items())

    async def prepare(self) -> None:
        async def create() -> None:
            async with Admin(self.stage.around.options("admin", self.stage.stream("copies"))) as admin:
                await admin.topics.create(TARGET, len(self.targets))

        await self.stage.process("copies-admin").start(create())

    def start(self) -> None:
        for number in range(self.plan.group.members):
            name = f"copier-{number}"
            self._supervisor.add(name, Copier(self, number, name).run)
        for number in range(self.plan.twins):
            self._supervisor.add(f"twin-{number}", Copier(self, number, f"twin-{number}").run)
        reader = CommittedReader(self.target_surroundings, self.ledger, self.stage.stream("reader of copies"))
        self._tasks = [self._watcher.start(), self.stage.process("copies-reader").start(reader.run())]

    async def finish(self) -> None:
        await self._supervisor.end()
        history = self.stage.around.history
        bounds = await partition_bounds(self.stage)
        ends = {partition: end if end > start else 0 for partition, (start, end) in bounds.items()}
        last: list[asyncio.Task[None]] = []
        for number in range(self.plan.group.members):
            copier = Copier(self, number, f"last-copier-{number}", last=True)
            copier.until = ends
            last.append(self.stage.process(f"last-copier-{number}").start(copier.run()))
        _, unfinished = await asyncio.wait(last, timeout=PATIENCE_SECONDS)
        if unfinished:
            history.blame(f"{len(unfinished)} of the last copiers do not come to an end")
        for task in (*unfinished, *self._tasks):
            task.cancel()
        for result in await asyncio.gather(*last, *self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                history.blame(f"a copier or its reader failed: {result!r}")
        self._starts = {partition: start for partition, (start, _) in bounds.items()}

    async def look(self) -> None:
        stage, history = self.stage, self.stage.around.history
        found: Found = {}
        task = stage.process("last-reader-of-copies").start(
            read_all_committed(self.target_surroundings, found, stage.stream("last reader of copies"))
        )
        await task
        committed = await self._watcher.last_look()
        self.ledger.judge(found)
        source = {partition: history.content(partition) for partition in stage.around.partitions}
        wrong = CopyBook(stage.around.partitions).judge(found, committed, source, self._starts)
        for violation in (*self.ledger.violations, *wrong):
            history.blame(f"copying: {violation}")

    def facts(self) -> dict[str, int]:
        return {
            "copying transactions": len(self.ledger.written),
            "copying committed": len(self.ledger.committed),
            "copier crashes": self._supervisor.crashes,
        }
