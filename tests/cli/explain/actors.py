"""Producers and members that run beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from tests.support.waiting import until

from ottla.testing.broker import EmbeddedBroker

GROUP = "shop"


@contextmanager
def running(step: Callable[[], object]) -> Iterator[None]:
    """Call `step` again and again, in a thread, for as long as the block runs."""
    over = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while not over.is_set():
                step()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not failed, failed


def member(broker: EmbeddedBroker, *topics: str, **settings: object) -> Consumer:
    """A member that has partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(list(topics or ("orders",)))
    until(lambda: consumer.poll(0.1) or consumer.assignment(), lambda _: consumer.assignment())
    return consumer


def commit(consumer: Consumer, offset: int, partition: int = 0, topic: str = "orders") -> None:
    consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)


def commit_messages(consumer: Consumer, messages: list[Message]) -> None:
    """Commit behind the last message of each partition."""
    places = {message.partition(): message.offset() + 1 for message in messages if message.error() is None}
    for partition, offset in places.items():
        commit(consumer, offset, partition)


def produce(
    broker: EmbeddedBroker, count: int, partition: int = 0, size: int = 10, key: bytes | None = None, **settings: object
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    for _ in range(count):
        producer.produce("orders", b"x" * size, key=key, partition=partition)
    assert producer.flush(60) == 0
