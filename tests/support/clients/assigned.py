"""Kafka clients with one interface: a test is written once and runs with all. They use no groups: partitions are
assigned.
"""

import asyncio
import base64
import time
import warnings
from collections.abc import Coroutine, Iterable, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol, TypeVar

import aiokafka
import confluent_kafka
from tests.support.java.programs import JavaServer
from tests.support.waiting import WAIT_S

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # importing it uses a deprecated function of Python
    import kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
T = TypeVar("T")


class Message(NamedTuple):
    """A record that is sent or received; `offset` is -1 before it has one."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    offset: int = -1


class Drained(NamedTuple):
    """A record of a topic that was read to its end, with key and value as text."""

    partition: int
    offset: int
    key: str | None
    value: str | None


class Sending(NamedTuple):
    """The settings of a producer."""

    codec: str = "none"
    acks: str = "all"
    idempotent: bool = False
    max_request_bytes: int = 1_048_576


PLAIN = Sending()


class Client(Protocol):
    name: str
    version: str

    def produce(
        self, bootstrap: str, topic: str, partition: int, messages: Sequence[Message], how: Sending = PLAIN
    ) -> list[int]:
        """The offset of each message (-1 where the client does not learn it, as with acks=0)."""

    def consume(self, bootstrap: str, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        """`count` messages from `offset` on, or fewer if they do not come in time."""

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        """The first offset whose timestamp is at or after `timestamp`."""

    def watermarks(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        """The first offset and the next one to be written."""


class Java:
    """The Java clients, through the harness tests/java/clients."""

    def __init__(self, server: JavaServer, version: str) -> None:
        self.name = "java"
        self.version = version
        self._server = server

    def produce(
        self, bootstrap: str, topic: str, partition: int, messages: Sequence[Message], how: Sending = PLAIN
    ) -> list[int]:
        records = [
            {
                "partition": partition,
                "key": _base64(each.key),
                "value": _base64(each.value),
                "timestamp": each.timestamp,
                "headers": [[name, _base64(value)] for name, value in each.headers],
            }
            for each in messages
        ]
        config = {
            "compression.type": how.codec,
            "acks": how.acks,
            "enable.idempotence": str(how.idempotent).lower(),
            "linger.ms": "50",
            "max.request.size": str(how.max_request_bytes),
        }
        answers = self.ask("produce", bootstrap, topic=topic, records=records, config=config)
        for answer in answers:
            assert "error" not in answer, answer
        return [answer["offset"] for answer in answers]

    def consume(self, bootstrap: str, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        positions = [[topic, partition, offset]]
        found = self.ask("consume", bootstrap, positions=positions, count=count, timeout_ms=int(WAIT_S * 1000))
        return [
            Message(
                value=_bytes(each["value"]),
                key=_bytes(each["key"]),
                headers=tuple((name, _bytes(value)) for name, value in each["headers"]),
                timestamp=each["timestamp"],
                offset=each["offset"],
            )
            for each in found
        ]

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        found = self.ask("offsets", bootstrap, topic=topic, partition=partition, times=[timestamp])["times"][0]
        return None if found is None else int(found[0])

    def watermarks(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        found = self.ask("offsets", bootstrap, topic=topic, partition=partition)
        return found["beginning"], found["end"]

    def drain(self, bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Drained]:
        """Everything in the topic that this isolation level shows."""
        found = self.ask("drain", bootstrap, topic=topic, config={"isolation.level": isolation})
        return [Drained(*each) for each in found]

    def ask(self, verb: str, bootstrap: str, **arguments: Any) -> Any:
        return self._server.ask({"verb": verb, "bootstrap": bootstrap, **arguments})


class Confluent:
    """confluent-kafka: librdkafka."""

    name = "confluent-kafka"

    def __init__(self) -> None:
        self.version = f"{version('confluent-kafka')} (librdkafka {confluent_kafka.libversion()[0]})"

    def produce(
        self, bootstrap: str, topic: str, partition: int, messages: Sequence[Message], how: Sending = PLAIN
    ) -> list[int]:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": how.codec,
                "acks": how.acks,
                "enable.idempotence": how.idempotent,
                "linger.ms": 50,
                "message.max.bytes": how.max_request_bytes,
            }
        )
        offsets: dict[int, int] = {}

        def delivered(at: int) -> Any:
            def note(error: Any, message: Any) -> None:
                assert error is None, error
                offsets[at] = -1 if message.offset() is None or message.offset() < 0 else message.offset()

            return note

        for at, each in enumerate(messages):
            producer.produce(
                topic,
                each.value,
                each.key,
                partition,
                headers=list(each.headers),
                timestamp=each.timestamp or 0,
                on_delivery=delivered(at),
            )
        assert producer.flush(WAIT_S) == 0
        return [offsets[at] for at in range(len(messages))]

    def consume(self, bootstrap: str, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        consumer = self._consumer(bootstrap)
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, offset)])
            found: list[Message] = []
            deadline = time.monotonic() + WAIT_S
            while len(found) < count and time.monotonic() < deadline:
                for each in consumer.consume(count - len(found), timeout=0.2):
                    assert each.error() is None, each.error()
                    headers = tuple(each.headers() or ())
                    found.append(Message(each.value(), each.key(), headers, each.timestamp()[1], each.offset()))
            return found
        finally:
            consumer.close()

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        consumer = self._consumer(bootstrap)
        try:
            wanted = confluent_kafka.TopicPartition(topic, partition, timestamp)
            found = consumer.offsets_for_times([wanted], timeout=WAIT_S)[0]
            return None if found.offset < 0 else int(found.offset)
        finally:
            consumer.close()

    def watermarks(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer(bootstrap)
        try:
            low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, partition), timeout=WAIT_S)
            return low, high
        finally:
            consumer.close()

    def _consumer(self, bootstrap: str) -> Any:
        # librdkafka's consumer insists on a group name even when it never joins one.
        settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
        return confluent_kafka.Consumer(settings)


class Aio:
    """aiokafka; each call runs its own event loop."""

    name = "aiokafka"

    def __init__(self) -> None:
        self.version = version("aiokafka")

    def produce(
        self, bootstrap: str, topic: str, partition: int, messages: Sequence[Message], how: Sending = PLAIN
    ) -> list[int]:
        async def run() -> list[int]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if how.codec == "none" else how.codec,
                acks="all" if how.acks == "all" else int(how.acks),
                enable_idempotence=how.idempotent,
                linger_ms=50,
                max_request_size=how.max_request_bytes,
            )
            async with producer:
                sent = [
                    await producer.send(
                        topic,
                        each.value,
                        each.key,
                        partition,
                        timestamp_ms=each.timestamp,
                        headers=list(each.headers),
                    )
                    for each in messages
                ]
                answers = await asyncio.gather(*sent)
            return [-1 if answer is None else answer.offset for answer in answers]

        return _in_loop(run())

    def consume(self, bootstrap: str, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        async def run() -> list[Message]:
            async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False) as consumer:
                where = aiokafka.TopicPartition(topic, partition)
                consumer.assign([where])
                consumer.seek(where, offset)
                found: list[Message] = []
                deadline = time.monotonic() + WAIT_S
                while len(found) < count and time.monotonic() < deadline:
                    batches = await consumer.getmany(timeout_ms=200, max_records=count - len(found))
                    found += _python_messages(batches.values())
                return found

        return _in_loop(run())

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        async def run() -> int | None:
            async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
                where = aiokafka.TopicPartition(topic, partition)
                found = (await consumer.offsets_for_times({where: timestamp}))[where]
                return None if found is None else int(found.offset)

        return _in_loop(run())

    def watermarks(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        async def run() -> tuple[int, int]:
            async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
                where = aiokafka.TopicPartition(topic, partition)
                first = (await consumer.beginning_offsets([where]))[where]
                last = (await consumer.end_offsets([where]))[where]
                return first, last

        return _in_loop(run())


class KafkaPython:
    name = "kafka-python"

    def __init__(self) -> None:
        self.version = version("kafka-python")

    def produce(
        self, bootstrap: str, topic: str, partition: int, messages: Sequence[Message], how: Sending = PLAIN
    ) -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if how.codec == "none" else how.codec,
            acks="all" if how.acks == "all" else int(how.acks),
            enable_idempotence=how.idempotent,
            linger_ms=50,
            max_request_size=how.max_request_bytes,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=each.value,
                    key=each.key,
                    headers=list(each.headers),
                    partition=partition,
                    timestamp_ms=each.timestamp,
                )
                for each in messages
            ]
            producer.flush(WAIT_S)
            return [each.get(WAIT_S).offset for each in sent]
        finally:
            producer.close(WAIT_S)

    def consume(self, bootstrap: str, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        consumer = self._consumer(bootstrap)
        try:
            where = kafka.TopicPartition(topic, partition)
            consumer.assign([where])
            consumer.seek(where, offset)
            found: list[Message] = []
            deadline = time.monotonic() + WAIT_S
            while len(found) < count and time.monotonic() < deadline:
                batches = consumer.poll(timeout_ms=200, max_records=count - len(found))
                found += _python_messages(batches.values())
            return found
        finally:
            consumer.close()

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp: int) -> int | None:
        consumer = self._consumer(bootstrap)
        try:
            where = kafka.TopicPartition(topic, partition)
            found = consumer.offsets_for_times({where: timestamp})[where]
            return None if found is None else int(found.offset)
        finally:
            consumer.close()

    def watermarks(self, bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer(bootstrap)
        try:
            where = kafka.TopicPartition(topic, partition)
            return consumer.beginning_offsets([where])[where], consumer.end_offsets([where])[where]
        finally:
            consumer.close()

    def _consumer(self, bootstrap: str) -> Any:
        return kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)


def _python_messages(batches: Iterable[Iterable[Any]]) -> list[Message]:
    """aiokafka's and kafka-python's records have the same attributes."""
    return [
        Message(each.value, each.key, tuple(map(tuple, each.headers)), each.timestamp, each.offset)
        for batch in batches
        for each in batch
    ]


def _in_loop(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 2 * WAIT_S))


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)
