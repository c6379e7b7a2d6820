"""Share consumers of every client that has them, with one interface: Java, librdkafka, franz-go.

A call polls or acknowledges for one consumer; the client sends heartbeats by itself.
"""

import time
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

import confluent_kafka
from tests.support.clients.assigned import Confluent
from tests.support.lines import LineServer
from tests.support.waiting import WAIT_S


class Acquired(NamedTuple):
    """A record that a consumer has acquired, and its delivery count."""

    topic: str
    partition: int
    offset: int
    value: str
    deliveries: int


class Sharer(Protocol):
    def poll(self, timeout_ms: int = 500) -> list[Acquired]:
        """The records of the first fetch that has some; empty if none come in time."""

    def acknowledge(self, records: Sequence[Acquired], kind: str) -> None:
        """Accept, release or reject records; sent with the next poll or commit."""

    def commit(self) -> None: ...
    def leave(self) -> None: ...


class ShareClient(Protocol):
    name: str
    version: str

    def join(self, bootstrap: str, group: str, topic: str, *, explicit: bool, limit: int = 500) -> Sharer: ...


def polled(sharer: Sharer, wanted: int, timeout_s: float = WAIT_S) -> list[Acquired]:
    """Poll until there are at least `wanted` records; in implicit mode each poll accepts the
    records of the one before.
    """
    found: list[Acquired] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < wanted:
        assert time.monotonic() < deadline, f"{len(found)} of {wanted} came: {found[-20:]}"
        found += sharer.poll()
    return found


class LineSharer:
    def __init__(self, server: LineServer, name: str, *, shows_renewed: bool) -> None:
        self._server = server
        self._name = name
        self._shows_renewed = shows_renewed

    def poll(self, timeout_ms: int = 500) -> list[Acquired]:
        return [Acquired(*each) for each in self._ask("share_poll", timeout_ms=timeout_ms)]

    def acknowledge(self, records: Sequence[Acquired], kind: str) -> None:
        acks = [
            {"topic": each.topic, "partition": each.partition, "offset": each.offset, "type": kind} for each in records
        ]
        self._ask("share_ack", acks=acks)

    def commit(self) -> None:
        answer = self._ask("share_commit")
        assert not any(answer.values()), answer

    def renew(self, records: Sequence[Acquired]) -> None:
        """Renew the acquisition locks of the records. The Java consumer returns renewed records once more."""
        self.acknowledge(records, "renew")
        self.commit()
        if self._shows_renewed:
            again = polled(self, len(records))
            assert [each.offset for each in again] == [each.offset for each in records]

    def leave(self) -> None:
        self._ask("share_leave")

    def _ask(self, verb: str, **arguments: Any) -> Any:
        return self._server.ask({"verb": verb, "member": self._name, **arguments})


class LineShares:
    """Share consumers of harnesses: Java uses the settings, franz-go a count; each ignores the other."""

    def __init__(self, server: LineServer, name: str, version: str) -> None:
        self.name = name
        self.version = version
        self._server = server
        self._names = count(1)

    def join(self, bootstrap: str, group: str, topic: str, *, explicit: bool, limit: int = 500) -> LineSharer:
        member = f"sharer-{next(self._names)}"
        config = {
            "group.id": group,
            "share.acknowledgement.mode": "explicit" if explicit else "implicit",
            "max.poll.records": str(limit),
            "share.acquire.mode": "record_limit",
        }
        request = {"verb": "share_join", "bootstrap": bootstrap, "member": member, "group": group, "topics": [topic]}
        self._server.ask({**request, "config": config, "count": limit})
        return LineSharer(self._server, member, shows_renewed=self.name == "java")


class ConfluentSharer:
    def __init__(self, consumer: confluent_kafka.ShareConsumer) -> None:
        self._consumer = consumer

    def poll(self, timeout_ms: int = 500) -> list[Acquired]:
        found = []
        for each in self._consumer.poll(timeout_ms / 1000):
            if each.error() is not None:
                raise confluent_kafka.KafkaException(each.error())
            where = (each.topic(), each.partition(), each.offset())
            found.append(Acquired(*where, each.value().decode(), each.delivery_count()))
        return found

    def acknowledge(self, records: Sequence[Acquired], kind: str) -> None:
        how = getattr(confluent_kafka.AcknowledgeType, kind.upper())
        for each in records:
            self._consumer.acknowledge_offset(each.topic, each.partition, each.offset, how)

    def commit(self) -> None:
        results = self._consumer.commit_sync(30)
        assert not any(results.values()), results

    def leave(self) -> None:
        self._consumer.close()


class ConfluentShares:
    def __init__(self) -> None:
        self.name, self.version = Confluent.name, Confluent().version

    def join(self, bootstrap: str, group: str, topic: str, *, explicit: bool, limit: int = 500) -> ConfluentSharer:
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit" if explicit else "implicit",
            "max.poll.records": limit,
        }
        consumer = confluent_kafka.ShareConsumer(settings)
        consumer.subscribe([topic])
        return ConfluentSharer(consumer)
