"""`python -m bench.clients.programs PROGRAM BOOTSTRAP TOPIC RECORDS`: a client in a process of its own, self-timed.

Prints one line of JSON: records per second, and CPU microseconds of this process per record. Start, connecting and the
first records (until everything is imported, connected and compiled) do not count. All producers: acks=all, idempotent,
batches of 64 KiB, 5 ms of linger. All consumers: partitions assigned, from the beginning.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

PARTITIONS = 4
VALUE = b"v" * 100
WARM_UP = 2_000
BATCH_BYTES = 65_536
LINGER_MS = 5
AT_ONCE = 500  # records per poll: the default of the Java consumer, of kafka-python and of ours


class Watch:
    """Measures from the time when the first records are done."""

    def __init__(self) -> None:
        self.begun = False

    def start(self) -> None:
        self.begun = True
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self, records: int) -> None:
        wall_s, cpu_s = time.perf_counter() - self._wall, time.process_time() - self._cpu
        print(json.dumps({"records_per_s": records / wall_s, "cpu_us": 1e6 * cpu_s / records}))


class Count:
    """Counts a consumer's records; the first ones are not timed."""

    def __init__(self, total: int) -> None:
        self.left = total
        self._watch = Watch()
        self._timed = 0

    def add(self, records: int) -> bool:
        """Count records; False when all have come."""
        self.left -= records
        if self._watch.begun:
            self._timed += records
            if self.left <= 0:
                self._watch.stop(self._timed)
        elif records:
            self._watch.start()
        return self.left > 0


# --- ottla.client -------------------------------------------------------------------------------------------------


async def ottla_post(bootstrap: str, topic: str, total: int) -> None:
    from ottla import Producer, ProducerOptions

    options = ProducerOptions(batch_size_bytes=BATCH_BYTES, linger_ms=LINGER_MS)
    async with Producer(bootstrap, options) as producer:
        post = producer.post
        watch = Watch()
        for count in (WARM_UP, total):
            watch.start()
            for _ in range(count):
                await post(topic, VALUE)
            await producer.flush()
        watch.stop(total)


async def ottla_enqueue(bootstrap: str, topic: str, total: int) -> None:
    from ottla import Producer, ProducerOptions

    options = ProducerOptions(batch_size_bytes=BATCH_BYTES, linger_ms=LINGER_MS)
    async with Producer(bootstrap, options) as producer:
        enqueue = producer.enqueue
        watch = Watch()
        for count in (WARM_UP, total):
            watch.start()
            for _ in range(count):
                await enqueue(topic, VALUE)
            await producer.flush()
        watch.stop(total)


async def ottla_poll(bootstrap: str, topic: str, total: int) -> None:
    from ottla import Consumer, ConsumerOptions
    from ottla.model.ids import TopicPartition

    async with Consumer(bootstrap, ConsumerOptions(auto_offset_reset="earliest")) as consumer:
        consumer.assign(TopicPartition(topic, index) for index in range(PARTITIONS))
        count = Count(total)
        while count.add(sum(map(len, (await consumer.poll()).values()))):
            pass


async def ottla_iterate(bootstrap: str, topic: str, total: int) -> None:
    from ottla import Consumer, ConsumerOptions
    from ottla.model.ids import TopicPartition

    async with Consumer(bootstrap, ConsumerOptions(auto_offset_reset="earliest")) as consumer:
        consumer.assign(TopicPartition(topic, index) for index in range(PARTITIONS))
        count = Count(total)
        async for _ in consumer:
            if not count.add(1):
                break


async def ottla_arrow(bootstrap: str, topic: str, total: int) -> None:
    from ottla import Consumer, ConsumerOptions
    from ottla.model.ids import TopicPartition

    async with Consumer(bootstrap, ConsumerOptions(auto_offset_reset="earliest")) as consumer:
        consumer.assign(TopicPartition(topic, index) for index in range(PARTITIONS))
        count = Count(total)
        async for batch in consumer.arrow():
            if not count.add(batch.num_rows):
                break


# --- aiokafka -----------------------------------------------------------------------------------------------------


async def aiokafka_send(bootstrap: str, topic: str, total: int) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=True,
        max_batch_size=BATCH_BYTES,
        linger_ms=LINGER_MS,
    )
    await producer.start()
    watch = Watch()
    for count in (WARM_UP, total):
        watch.start()
        for _ in range(count):
            await producer.send(topic, VALUE)
        await producer.flush()
    watch.stop(total)
    await producer.stop()


async def aiokafka_getmany(bootstrap: str, topic: str, total: int) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, index) for index in range(PARTITIONS)])
    await consumer.start()
    count = Count(total)
    while count.add(sum(map(len, (await consumer.getmany(timeout_ms=1_000, max_records=AT_ONCE)).values()))):
        pass
    await consumer.stop()


async def aiokafka_iterate(bootstrap: str, topic: str, total: int) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, index) for index in range(PARTITIONS)])
    await consumer.start()
    count = Count(total)
    async for _ in consumer:
        if not count.add(1):
            break
    await consumer.stop()


# --- kafka-python and confluent-kafka -------------------------------------------------------------------------------


async def kafka_python_send(bootstrap: str, topic: str, total: int) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, batch_size=BATCH_BYTES, linger_ms=LINGER_MS
    )
    watch = Watch()
    for count in (WARM_UP, total):
        watch.start()
        for _ in range(count):
            producer.send(topic, VALUE)
        producer.flush()
    watch.stop(total)
    producer.close()


async def kafka_python_poll(bootstrap: str, topic: str, total: int) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, index) for index in range(PARTITIONS)])
    count = Count(total)
    while count.add(sum(map(len, consumer.poll(timeout_ms=1_000).values()))):
        pass
    consumer.close()


async def kafka_python_iterate(bootstrap: str, topic: str, total: int) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, index) for index in range(PARTITIONS)])
    count = Count(total)
    for _ in consumer:
        if not count.add(1):
            break
    consumer.close()


async def confluent_consume(bootstrap: str, topic: str, total: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    count = Count(total)
    while count.add(len(consumer.consume(10_000, timeout=0.1))):
        pass
    consumer.close()


PROGRAMS: dict[str, Callable[[str, str, int], Awaitable[None]]] = {
    program.__name__: program
    for program in (
        *(ottla_post, ottla_enqueue, aiokafka_send, kafka_python_send),
        *(ottla_poll, aiokafka_getmany, kafka_python_poll),
        *(ottla_iterate, aiokafka_iterate, kafka_python_iterate),
        *(ottla_arrow, confluent_consume),
    )
}


if __name__ == "__main__":
    name, bootstrap, topic, total = sys.argv[1:]
    asyncio.run(PROGRAMS[name](bootstrap, topic, int(total)))  # type: ignore[arg-type]
