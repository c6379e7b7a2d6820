"""The clients of topics that change: producers of keyed records, with and without transactions, and a read_committed
reader. Each uses the real client and reports to the `TopicBook`.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.consumer.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.consumer.ranges import Span
from ottla.client.errors import ClientError
from ottla.client.producer.accumulator import RecordMetadata
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.sim.check import Payload
from ottla.sim.ledger import COMMITTED, TransactionName
from ottla.sim.topics.check import HEADER, TopicBook, content_of
from ottla.sim.topics.plan import KeyedWriterPlan, TopicPlan, TopicsPlan
from ottla.sim.transactional import Changed, take_over
from ottla.sim.workload import PATIENCE_SECONDS, Surroundings, records_of

TRANSACTION_TIMEOUT_MS = 60_000  # longer than any disturbance of a transaction


class KeyedWriter:
    """Sends records with few keys, including tombstones, until it is told to stop."""

    def __init__(
        self, around: Surroundings, plan: TopicsPlan, own: KeyedWriterPlan, book: TopicBook, rng: random.Random
    ) -> None:
        self._around = around
        self._own = own
        self._book = book
        self._rng = rng
        self._keys = [b"key-%d" % number for number in range(plan.keys)]
        self._left = plan.records
        self._undisturbed = plan.undisturbed
        self._transactions = 0
        self.stopped = False

    @property
    def _goes_on(self) -> bool:
        return self._left > 0 and not self.stopped

    async def run(self) -> None:
        while self._goes_on:
            try:
                async with self._producer() as producer:
                    while self._goes_on:
                        await (self._transaction(producer) if self._own.transactional else self._send(producer, None))
                        if self._rng.random() < 0.5:
                            await asyncio.sleep(self._rng.expovariate(1 / self._own.pause_seconds))
            except (ClientError, ApiError) as error:
                self._around.tell(f"writer {self._own.number} begins anew: {error!r}")
                if self._undisturbed:
                    self._around.history.blame(f"writer {self._own.number} failed, though only clocks jump: {error!r}")
                await asyncio.sleep(self._rng.uniform(0.1, 0.5))
        if self._own.transactional:
            await take_over(f"keyed-{self._own.number}", self._producer, self._around.history.blame)

    def _producer(self) -> Producer:
        own = self._own
        return Producer(
            self._around.options(f"keyed-{own.number}", self._rng),
            ProducerOptions(
                transactional_id=f"keyed-{own.number}" if own.transactional else None,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                idempotent=own.idempotent,
                codec=own.codec,
                linger_ms=self._rng.choice((0.0, 5.0)),
                batch_size_bytes=self._rng.choice((200, 2000)),
                request_timeout_ms=4_000,
                delivery_timeout_ms=8_000,
                auto_create_topics=False,
            ),
        )

    async def _send(self, producer: Producer, transaction: TransactionName | None) -> asyncio.Future[RecordMetadata]:
        rng = self._rng
        topic: TopicPlan = rng.choice(self._own.topics)
        where = TopicPartition(topic.name, rng.randrange(topic.partitions))
        self._left -= 1
        payload = Payload(self._own.number, where.partition, self._left_to_sequence())
        key = rng.choice(self._keys)
        value = None if rng.random() < 0.08 else rng.randbytes(rng.randint(0, self._own.value_bytes_max))
        self._book.sending(payload, where, key, is_tombstone=value is None, transaction=transaction)
        headers = [(HEADER, content_of(payload, key, value))]
        try:
            future = await producer.enqueue(where.topic, value, key, headers=headers, partition=where.partition)
        except BaseException:
            self._book.gave_up(payload)
            raise
        future.add_done_callback(partial(self._settled, payload, in_transaction=transaction is not None))
        return future

    def _left_to_sequence(self) -> int:
        """Return the sequence of the present record; sequences count up."""
        return (1 << 31) - self._left

    def _settled(self, payload: Payload, done: asyncio.Future[RecordMetadata], *, in_transaction: bool) -> None:
        if done.cancelled() or done.exception() is not None:
            self._book.gave_up(payload)
        elif not in_transaction:
            self._book.acked(payload, done.result().offset)

    async def _transaction(self, producer: Producer) -> None:
        self._transactions += 1
        name, rng = TransactionName(self._own.number, self._transactions), self._rng
        self._book.begin(name)
        sent: list[tuple[int, asyncio.Future[RecordMetadata]]] = []
        try:
            async with producer.transaction():
                for _ in range(rng.randint(1, 4)):
                    future = await self._send(producer, name)
                    sent.append((self._left_to_sequence(), future))
                    if rng.random() < 0.2:
                        await asyncio.sleep(rng.expovariate(10))
                if rng.random() < self._own.abort_rate:
                    raise Changed
                self._book.ending(name)
        except Changed:
            return
        self._book.committed += 1
        for sequence, future in sent:
            if future.done() and not future.cancelled() and future.exception() is None:
                metadata = future.result()
                self._book.acked(Payload(self._own.number, metadata.partition, sequence), metadata.offset)


class CommittedFollower:
    """Follows the committed records of all topics; starts from the beginning when a topic is created again."""

    def __init__(self, around: Surroundings, plan: TopicsPlan, book: TopicBook, rng: random.Random) -> None:
        self._around = around
        self._plan = plan
        self._book = book
        self._rng = rng
        self._next: dict[TopicPartition, tuple[int, int]] = {}  # incarnation, offset

    async def run(self) -> None:
        while True:
            try:
                async with Cluster(self._around.options("follower", self._rng)) as cluster:
                    while True:
                        for partition in partitions_of(self._plan):
                            await self._look(cluster, partition)
                        await asyncio.sleep(self._rng.uniform(0.1, 0.6))
            except (ClientError, ApiError) as error:
                self._around.tell(f"the follower begins anew: {error}")
                self._next.clear()
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _look(self, cluster: Cluster, partition: TopicPartition) -> None:
        era = self._book.era(partition.topic)
        if era is None or not await self._knows(cluster, partition.topic):
            return
        incarnation, offset = self._next.get(partition, (-1, 0))
        start = (await list_offsets(cluster, {partition: EARLIEST}))[partition].offset
        end = (await list_offsets(cluster, {partition: LATEST}, read_committed=True))[partition].offset
        if incarnation == era.incarnation:
            start = max(start, offset)
        if start >= end:
            return
        async with records_of(cluster, [Span(*partition, start, end)], COMMITTED) as records:
            async for record in records:
                if not await self._knows(cluster, partition.topic):
                    return
                self._book.read(record, era)
                self._next[partition] = era.incarnation, record.offset + 1

    async def _knows(self, cluster: Cluster, topic: str) -> bool:
        """Whether the topic that the client reads now is, by its id, the one that was created last."""
        if (await cluster.topic(topic)).topic_id == self._book.id_of(topic):
            return True
        cluster.metadata.mark_stale(topic)
        return False


def partitions_of(plan: TopicsPlan) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in plan.topics for index in range(topic.partitions)]


async def judge_all(around: Surroundings, plan: TopicsPlan, book: TopicBook, rng: random.Random) -> None:
    """Read everything when no transaction is open: the last stable offset is the end of the log."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    for partition in partitions_of(plan):
        while True:
            problem = "something is undecided still, or of before it was made anew"
            try:
                async with Cluster(around.options("last-reader", rng)) as cluster:
                    stable = (await list_offsets(cluster, {partition: LATEST}, read_committed=True))[partition].offset
                    end = (await list_offsets(cluster, {partition: LATEST}))[partition].offset
                    start = (await list_offsets(cluster, {partition: EARLIEST}))[partition].offset
                    told = (await cluster.topic(partition.topic)).topic_id
                    if stable == end and book.id_of(partition.topic) in (None, told):
                        records: list[ConsumedRecord] = []
                        if start < end:
                            async with records_of(cluster, [Span(*partition, start, end)], COMMITTED) as found:
                                records = [record async for record in found]
                        book.judge(partition, start, end, records)
                        break
            except (ClientError, ApiError) as error:
                problem = f"it cannot be read: {error}"
            if asyncio.get_running_loop().time() > deadline:
                around.history.blame(f"{partition}: {problem}, although all faults are over")
                break
            await asyncio.sleep(1)
