"""The clients of a simulation: writers, following readers, jumping readers, and the last reader.

Each uses the real client on its own host and reports to the `History`. They go on whatever happens: when a client
raises an error, as it would in a user's program, they close it, wait and start again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.connection import Address
from ottla.client.consumer.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.consumer.ranges import ConsumedRecord, RangeReader, ReadOptions, Span
from ottla.client.errors import ClientError, OffsetOutOfRange
from ottla.client.options import ClientOptions
from ottla.client.producer.accumulator import RecordMetadata
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.records.compress import Codec
from ottla.sim.check import Guarantee, History, Payload, SimBounds, SimWriter, encode_payload

Records = AsyncGenerator[ConsumedRecord, None]

# Small enough to arrive within the request timeout over the slowest link.
SMALL_READS = ReadOptions(max_partition_bytes=20_000)
PATIENCE_SECONDS = 600.0  # how long the last reader retries after all faults


@dataclass(frozen=True, slots=True)
class WriterPlan:
    """One producer: its promises and its options."""

    writer: SimWriter
    records: int
    pause_seconds: float
    value_bytes_max: int
    codec: Codec
    linger_ms: float
    batch_size_bytes: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all clients of a run share."""

    bootstrap: tuple[Address, ...]
    partitions: tuple[TopicPartition, ...]
    history: History
    now_ms: Callable[[], int]
    tell: Callable[[str], None]

    def options(self, client_id: str, rng: random.Random) -> ClientOptions:
        return ClientOptions(
            bootstrap=self.bootstrap,
            client_id=client_id,
            connect_timeout_ms=3_000,
            request_timeout_ms=6_000,
            api_timeout_ms=20_000,
            rng=rng,
            now_ms=self.now_ms,
        )


class WritingClient:
    """Sends the records of its plan, each once from the application's point of view."""

    def __init__(self, around: Surroundings, plan: WriterPlan, rng: random.Random) -> None:
        self._around = around
        self._plan = plan
        self._rng = rng
        self._sequence = 0

    async def run(self) -> None:
        while self._sequence < self._plan.records:
            try:
                async with self._producer() as producer:
                    await self._send_all(producer)
            except (ClientError, ApiError) as error:
                self._around.tell(f"writer {self._plan.writer.number} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    def _producer(self) -> Producer:
        plan = self._plan
        return Producer(
            self._around.options(f"writer-{plan.writer.number}", self._rng),
            ProducerOptions(
                acks=plan.writer.acks,
                idempotent=plan.writer.idempotent,
                codec=plan.codec,
                linger_ms=plan.linger_ms,
                batch_size_bytes=plan.batch_size_bytes,
                # Without sequence numbers the order over retries needs a single request in flight.
                max_in_flight=5 if plan.writer.idempotent and plan.writer.acks == -1 else 1,
                request_timeout_ms=6_000,
                delivery_timeout_ms=60_000,
                auto_create_topics=False,
            ),
        )

    async def _send_all(self, producer: Producer) -> None:
        while self._sequence < self._plan.records:
            partition = self._rng.choice(self._around.partitions)
            payload = Payload(self._plan.writer.number, partition.partition, self._sequence)
            self._sequence += 1
            filling = self._rng.randbytes(self._rng.randint(0, self._plan.value_bytes_max))
            self._around.history.sending(payload)
            try:
                value = encode_payload(payload, filling)
                future = await producer.enqueue(partition.topic, value, b"key", partition=partition.partition)
            except BaseException:
                self._around.history.gave_up(payload)
                raise
            future.add_done_callback(partial(self._settled, partition, payload))
            if self._rng.random() < 0.5:
                await asyncio.sleep(self._rng.expovariate(1 / self._plan.pause_seconds))

    def _settled(self, partition: TopicPartition, payload: Payload, done: asyncio.Future[RecordMetadata]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._around.history.gave_up(payload)
        else:
            self._around.history.acked(partition, payload, done.result().offset)


class FollowingReader:
    """Reads everything from the beginning, for ever; gaps are violations."""

    def __init__(self, around: Surroundings, number: int, rng: random.Random) -> None:
        self._around = around
        self._number = number
        self._rng = rng
        self._next: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except OffsetOutOfRange as error:
                history = self._around.history
                gone = error.offset <= error.start_offset or history.may_be_erased(error.partition, error.offset)
                if history.guarantee is Guarantee.SAFE and not gone:
                    history.blame(f"reader {self._number}: {error}")
                self._next.pop(error.partition, None)
            except (ClientError, ApiError) as error:
                self._around.tell(f"reader {self._number} begins anew: {error}")
            await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _follow(self) -> None:
        options = ReadOptions(
            max_wait_ms=self._rng.choice((10, 50, 500)), max_partition_bytes=self._rng.choice((1, 5000, 1 << 20))
        )
        spans = [Span(*partition, self._next.get(partition, EARLIEST), None) for partition in self._around.partitions]
        async with (
            Cluster(self._around.options(f"reader-{self._number}", self._rng)) as cluster,
            records_of(cluster, spans, options) as records,
        ):
            async for record in records:
                partition = TopicPartition(record.topic, record.partition)
                expected = self._next.get(partition)
                self._around.history.read(partition, record.offset, record.value, expected)
                self._next[partition] = record.offset + 1
                if self._rng.random() < 0.002:
                    return  # sometimes start again for no reason


class JumpingReader:
    """Asks for the bounds of partitions and reads small ranges between them."""

    def __init__(self, around: Surroundings, number: int, rng: random.Random) -> None:
        self._around = around
        self._number = number
        self._rng = rng

    async def run(self) -> None:
        while True:
            try:
                async with Cluster(self._around.options(f"jumper-{self._number}", self._rng)) as cluster:
                    for _ in range(20):
                        await self._jump(cluster)
                        await asyncio.sleep(self._rng.uniform(0.05, 1.0))
            except (ClientError, ApiError) as error:
                self._around.tell(f"jumper {self._number} begins anew: {error}")
            await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _jump(self, cluster: Cluster) -> None:
        partition = self._rng.choice(self._around.partitions)
        start, end = await ask_bounds(self._around, cluster, partition)
        if start >= end:
            return
        first = self._rng.randrange(start, end)
        last = min(end, first + self._rng.randint(1, 50))
        expected = first
        async with records_of(cluster, [Span(*partition, first, last)]) as records:
            async for record in records:
                self._around.history.read(partition, record.offset, record.value, expected)
                expected = record.offset + 1
        if expected != last and self._around.history.guarantee is not Guarantee.ROTTEN:
            self._around.history.blame(f"jumper {self._number}: [{first}, {last}) of {partition} ended at {expected}")


class Eraser:
    """Deletes records from the start of partitions from time to time."""

    def __init__(self, around: Surroundings, rng: random.Random) -> None:
        self._around = around
        self._rng = rng

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._rng.uniform(0.5, 5.0))
            partition = self._rng.choice(self._around.partitions)
            try:
                async with Admin(self._around.options("eraser", self._rng)) as admin:
                    start, end = await ask_bounds(self._around, admin.cluster, partition)
                    before = self._rng.randint(start, end)
                    self._around.history.erasing(partition, before)
                    told = await admin.topics.delete_records(partition.topic, {partition.partition: before})
                    self._around.history.erased(partition, told[partition.partition])
            except (ClientError, ApiError) as error:
                self._around.tell(f"the eraser begins anew: {error}")


async def ask_bounds(around: Surroundings, cluster: Cluster, partition: TopicPartition) -> SimBounds:
    before = around.history.known_bounds(partition)
    start = (await list_offsets(cluster, {partition: EARLIEST}))[partition].offset
    end = (await list_offsets(cluster, {partition: LATEST}))[partition].offset
    told = SimBounds(start, end)
    around.history.told_bounds(partition, told, before)
    return told


def records_of(cluster: Cluster, spans: list[Span], options: ReadOptions | None = None) -> aclosing[Records]:
    """Return the records of some ranges; the generator is closed when its user leaves, not when it is collected."""
    return aclosing(RangeReader(cluster, spans, options).records())


async def create_topic(around: Surroundings, configs: dict[str, str], rng: random.Random) -> None:
    """Create the topic of the run, before the faults begin."""
    topic = around.partitions[0].topic
    async with Admin(around.options("admin", rng)) as admin:
        await admin.topics.create(topic, len(around.partitions), configs=configs)


async def read_everything(around: Surroundings, rng: random.Random) -> None:
    """Read every partition from its start to its end, when all faults are over."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + PATIENCE_SECONDS
    for partition in around.partitions:
        start, content = 0, list[tuple[int, bytes | None]]()
        while True:
            try:
                async with Cluster(around.options("last-reader", rng)) as cluster:
                    start, end = await ask_bounds(around, cluster, partition)
                    async with records_of(cluster, [Span(*partition, start, end)], SMALL_READS) as records:
                        content = [(record.offset, record.value) async for record in records]
                break
            except (ClientError, ApiError) as error:
                if around.history.guarantee is Guarantee.ROTTEN:
                    break
                if loop.time() > give_up_at:
                    around.history.blame(f"{partition} cannot be read although all faults are over: {error}")
                    return
                await asyncio.sleep(1)
        around.history.final_log(partition, start, content)
