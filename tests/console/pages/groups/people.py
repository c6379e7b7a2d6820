"""Members of groups, and records for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking

HOSTILE = '<script>alert(1)</script>/"><img src=x onerror=alert(2)>/../\u202e\x00 x'


def fill(bootstrap: str, topic: str, counts: Mapping[int, int] | int, size: int = 10) -> None:
    """Create a topic, and put so many records into each of its partitions."""
    given = dict(counts) if isinstance(counts, Mapping) else {0: counts}
    with Blocking(bootstrap) as client:
        client.admin.topics.create(topic, max(given) + 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, count in given.items():
        for _ in range(count):
            producer.produce(topic, b"x" * size, partition=partition)
    assert producer.flush(60) == 0


@contextmanager
def member(bootstrap: str, group: str, *topics: str, **settings: object) -> Iterator[Consumer]:
    """A member that has partitions, and reads nothing more than the test tells it to."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(list(topics))
    try:
        until(lambda: consumer.poll(0.1) or consumer.assignment(), lambda _: consumer.assignment())
        yield consumer
    finally:
        consumer.close()


def shown(ask: Callable[[], str], *words: str) -> str:
    """The page, as soon as it has these words."""
    return until(ask, lambda text: all(word in text for word in words))
