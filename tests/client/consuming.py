"""What the consumer's tests share: brokers, topics with records in them, members that read in the background."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tests.support.waiting import WAIT_S

from ottla import Cluster, ConsumedRecord, Consumer, ConsumerOptions, Producer, TopicPartition
from ottla.client.admin import Admin

T = TypeVar("T")
_names = (f"consumer-{n}" for n in itertools.count())

# Nobody waits three seconds for more members, and KIP-848's do not wait five for each step.
LIVELY = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
}
# The protocols and assignors to be tested, by broker. KIP-848 joins Ottla's row once it serves ConsumerGroupHeartbeat.
CLASSIC = ("range", "roundrobin", "sticky", "cooperative-sticky")
PROTOCOLS = {"ottla": (*CLASSIC, "consumer"), "kafka": (*CLASSIC, "consumer")}


def fresh_name() -> str:
    return next(_names)


def options_of(protocol: str, group_id: str, **changes: object) -> ConsumerOptions:
    """Options for a lively test: `protocol` is an assignor's name (classic) or "consumer" (KIP-848)."""
    chosen: dict[str, object] = {
        "group_id": group_id,
        "group_protocol": "consumer" if protocol == "consumer" else "classic",
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 100,
        "auto_commit_interval_ms": 100,
        "fetch_max_wait_ms": 100,
    }
    if protocol != "consumer":
        chosen["assignors"] = (protocol,)
    return ConsumerOptions(**(chosen | changes))  # type: ignore[arg-type]


def run(bootstrap: str, test: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), Cluster(bootstrap) as cluster:
            await test(cluster)

    asyncio.run(main())


async def topic_with(cluster: Cluster, partitions: int, records: int, name: str | None = None) -> str:
    """A new topic with so many records in each partition; the values are their offsets."""
    name = name or fresh_name()
    await Admin(cluster).topics.create(name, partitions, 1)
    await fill(cluster, name, partitions, range(records))
    return name


async def fill(cluster: Cluster, topic: str, partitions: int, values: Sequence[int]) -> None:
    async with Producer(cluster) as producer:
        for value in values:
            for index in range(partitions):
                await producer.enqueue(topic, b"%d" % value, partition=index)


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in range(count)]


async def until(look: Callable[[], T], what: Callable[[], object] = lambda: "") -> T:
    """Wait until something holds; when it never does, say what was there instead."""
    try:
        async with asyncio.timeout(WAIT_S):
            while not (found := look()):  # noqa: ASYNC110 - the broker is another process
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"in vain: {what()}") from None
    return found


class Reader:
    """A consumer that reads in the background, and remembers what happened to it: a listener too."""

    def __init__(self, bootstrap: str, options: ConsumerOptions) -> None:
        self.consumer = Consumer(bootstrap, options)
        self.records: list[ConsumedRecord] = []
        self.events: list[tuple[str, list[TopicPartition]]] = []
        self.held: list[TopicPartition] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Reader":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self.consumer.close()

    def start(self, topics: object) -> "Reader":
        self.consumer.subscribe(topics, self)  # type: ignore[arg-type]
        return self.go_on()

    def go_on(self) -> "Reader":
        self._task = asyncio.create_task(self._read())
        return self

    async def stop(self) -> None:
        """Stop polling; the consumer stays as it is."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            failure = (await asyncio.gather(task, return_exceptions=True))[0]
            assert isinstance(failure, asyncio.CancelledError), failure

    async def _read(self) -> None:
        async for record in self.consumer:
            self.records.append(record)

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("assigned", list(partitions)))
        self.held += partitions

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await asyncio.sleep(0)  # a listener may take its time
        self.events.append(("revoked", list(partitions)))
        self.held = [each for each in self.held if each not in partitions]

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("lost", list(partitions)))
        self.held = []

    def places(self) -> list[tuple[int, int]]:
        return [(record.partition, record.offset) for record in self.records]


def shared(readers: Sequence[Reader], partitions: int) -> bool:
    """Whether everything is held, by one reader each, and about the same number by each reader."""
    held = [each for reader in readers for each in reader.consumer.assignment]
    counts = [len(reader.consumer.assignment) for reader in readers]
    return len(held) == len(set(held)) == partitions and max(counts) - min(counts) <= 1
