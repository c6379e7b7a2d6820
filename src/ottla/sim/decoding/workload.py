"""The participants: instances of a registry, a writer that registers its schemas, and consumers that decode.

The lookup inside a decode fails or is late (`LookupFaults`): then the record is not handled, the loop over the consumer
ends with the exception, as in a real program, and the next consumer reads the record again. Commits are automatic.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ottla.client.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.client.registry import RegistryError, RegistryUnreachable, SchemaRegistry
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.registry.port import NotLeader, Unavailable
from ottla.sim.decoding.check import GROUP, DecodingBook
from ottla.sim.decoding.sim_registry import LookupFaults, NoAnswer, SimRegistry, field_of
from ottla.sim.grouping import GroupWatcher
from ottla.sim.process import ProcessSupervisor, WorkloadStage

TOPIC = "framed"
END_SECONDS_MAX = 200.0  # all participants must have finished so long after the last fault
PARTITIONS = 2
_FRAME = b"\0"
_FAILED = (ClientError, ApiError, RegistryError, RegistryUnreachable)


class FramingWriter:
    """Registers a schema, writes some records with its id, and repeats this with the next schema."""

    def __init__(self, stage: WorkloadStage, registry: SimRegistry, book: DecodingBook, schemas: int) -> None:
        self._around = stage.around
        self._registry = registry
        self._book = book
        self._left = schemas
        self._rng = stage.stream("framing writer")

    async def run(self) -> None:
        while self._left:
            field = f"f{self._left}"
            try:
                schema_id = await self._registry.register(self._rng.randrange(len(self._registry.identities)), field)
                await self._write(schema_id, field)
                self._left -= 1
            except (NoAnswer, NotLeader, Unavailable, ClientError, ApiError) as error:
                self._around.tell(f"the writer of {field} tries again: {error!r}")
            await asyncio.sleep(self._rng.uniform(0.2, 1.0))

    async def _write(self, schema_id: int, field: str) -> None:
        options = ProducerOptions(
            linger_ms=5.0, request_timeout_ms=4_000, delivery_timeout_ms=8_000, auto_create_topics=False
        )
        value = _FRAME + schema_id.to_bytes(4, "big") + field.encode()
        async with Producer(self._around.options("framing-writer", self._rng), options) as producer:
            for _ in range(self._rng.randint(1, 5)):
                sent = await producer.send(TOPIC, value, partition=self._rng.randrange(PARTITIONS))
                self._book.written[TopicPartition(TOPIC, sent.partition), sent.offset] = None


class DecodingClient:
    """One consumer of the group; `run` may end by cancellation or crash, and is run again."""

    def __init__(
        self, stage: WorkloadStage, registry: SimRegistry, book: DecodingBook, name: str, protocol: str
    ) -> None:
        self._around = stage.around
        self._book = book
        self._registry = registry
        self._name = name
        self._protocol = protocol
        self._rng = stage.stream(f"decoder {name}")

    async def run(self, until: Callable[[], bool] = lambda: False) -> None:
        options = ConsumerOptions(
            group_id=GROUP,
            group_protocol=self._protocol,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            auto_commit_interval_ms=500,
            auto_offset_reset="earliest",
            max_poll_records=self._rng.choice((1, 5, 500)),
            fetch_max_wait_ms=200,
        )
        while not until():
            registry = self._registry.client()
            try:
                async with Consumer(self._around.options(self._name, self._rng), options) as consumer:
                    consumer.subscribe([TOPIC])
                    async for record in consumer:
                        await self._decode(registry, record)
                        if until():
                            break
            except _FAILED as error:
                self._around.tell(f"{self._name} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _decode(self, registry: SchemaRegistry, record: ConsumedRecord) -> None:
        assert record.value is not None
        schema_id = int.from_bytes(record.value[1:5], "big")
        source = await asyncio.get_running_loop().run_in_executor(None, registry.by_id, schema_id)
        partition = TopicPartition(record.topic, record.partition)
        written = record.value[5:].decode()
        self._book.was_decoded(partition, record.offset, schema_id, written, field_of(source.text))


class Asker:
    """A client without a cache that looks up ids again and again."""

    def __init__(self, stage: WorkloadStage, registry: SimRegistry, book: DecodingBook) -> None:
        self._registry = registry
        self._book = book
        self._rng = stage.stream("asker")

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._rng.uniform(0.1, 0.5))
            if self._book.answered:
                schema_id = self._rng.choice(list(self._book.answered))
                with contextlib.suppress(RegistryError, RegistryUnreachable):
                    await loop.run_in_executor(None, self._registry.client().by_id, schema_id)


class DecodingWorkload:
    """All participants; see the module."""

    def __init__(self, stage: WorkloadStage, slow_down: Callable[[str], None]) -> None:
        rng = stage.stream("decoding")
        self._stage = replace(
            stage,
            around=replace(stage.around, partitions=tuple(TopicPartition(TOPIC, index) for index in range(PARTITIONS))),
        )
        self.book = DecodingBook(stage.around.history.blame)
        self._registry = SimRegistry(self._stage, self.book, rng.randint(1, 2))
        self._faults = LookupFaults(self._registry, slow_down, stage.stream("trouble with lookups"))
        self._writer = FramingWriter(self._stage, self._registry, self.book, schemas=rng.randint(6, 14))
        self._protocol = rng.choice(("classic", "consumer"))
        self._watcher = GroupWatcher(self._stage, self.book)
        self._instances = ProcessSupervisor(stage, rng.choice((6.0, 30.0)), 0.5)
        self._decoders = ProcessSupervisor(stage, rng.choice((8.0, 30.0)), 0.4)
        self._tasks: list[asyncio.Task[None]] = []
        self._writing: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        await self._stage.process("framing-admin").start(self._make_topic(self._stage.stream("framing admin")))

    async def _make_topic(self, rng: random.Random) -> None:
        async with Admin(self._stage.around.options("framing-admin", rng)) as admin:
            await admin.topics.create(TOPIC, PARTITIONS)

    def start(self) -> None:
        for number in range(len(self._registry.identities)):
            run, crashed = partial(self._registry.run, number), partial(self._registry.crashed, number)
            self._instances.add(f"registry-{number}", run, crashed)
        for number in range(2):
            decoder = DecodingClient(self._stage, self._registry, self.book, f"decoder-{number}", self._protocol)
            self._decoders.add(f"decoder-{number}", decoder.run)
        self._writing = self._stage.process("framing-writer").start(self._writer.run())
        asker = Asker(self._stage, self._registry, self.book)
        self._tasks = [
            self._stage.net.loop.create_task(self._faults.run()),
            self._watcher.start(),
            self._stage.process("asker").start(asker.run()),
        ]

    async def finish(self) -> None:
        """Go on with one instance and one decoder, which must finish everything."""
        await self._decoders.end()
        await self._instances.end()
        self._tasks[0].cancel()
        registry = self._stage.process("registry-0").start(self._registry.run(0))
        assert self._writing is not None
        await self._within(self._writing, "the writer with schemas")
        last = DecodingClient(self._stage, self._registry, self.book, "decoder-last", self._protocol)
        reading = self._stage.process("decoder-last").start(last.run(lambda: self.book.all_decoded))
        await self._within(reading, "the last decoder")
        await self._within(self._stage.net.loop.create_task(self._registry.ready(0)), "the registry")
        self._look_up_all()
        for task in (*self._tasks, registry):
            task.cancel()
        await asyncio.gather(*self._tasks, registry, return_exceptions=True)
        await self._watcher.last_look()

    async def _within(self, task: asyncio.Task[None], who: str) -> None:
        blame = self._stage.around.history.blame
        _, unfinished = await asyncio.wait([task], timeout=END_SECONDS_MAX)
        if unfinished:
            blame(f"{who} does not come to an end although all faults are over")
            task.cancel()
        elif task.exception() is not None:
            blame(f"{who} failed: {task.exception()!r}")

    def _look_up_all(self) -> None:
        client = self._registry.client()
        for schema_id in self.book.answered:
            try:
                client.by_id(schema_id)
            except (RegistryError, RegistryUnreachable) as error:
                self._stage.around.history.blame(f"schema {schema_id} was registered, and is gone: {error}")

    async def look(self) -> None:
        await self._watcher.last_look()

    def facts(self) -> dict[str, int]:
        return {
            "schemas": len(self.book.answered),
            "framed": len(self.book.written),
            "decoded": self.book.decoded,
            "lookups": self.book.lookups,
            "failed lookups": self._faults.lookups,
            "registry crashes": self._instances.crashes,
        }
