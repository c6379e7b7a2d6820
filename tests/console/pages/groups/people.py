"""Members of groups, and records for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer
from tests.console.consoles import Visitor, running_console
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.security.security import Security
from ottla.console.options import ConsoleOptions
from ottla.testing.secure import SecureBroker

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


@contextmanager
def weak_visitor(broker: SecureBroker, user: str) -> Iterator[Visitor]:
    """A visitor who has signed in as a user that may do only what the test has allowed."""
    password = broker.add_user(user)
    options = ConsoleOptions(broker.bootstrap, port=0, security=Security.of(broker.security), signs_in=True)
    with running_console(options) as console:
        visitor = Visitor(console.url)
        assert visitor.send("/sign-in", "/sign-in", user=user, password=password).status == 200
        yield visitor


def token(visitor: Visitor, page: str) -> str:
    """The token of the visitor's session, from a page with a form."""
    return visitor.get(page).text.partition('name="_token" value="')[2].partition('"')[0]
