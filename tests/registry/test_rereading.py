"""Whatever makes a registry read its topic anew, nobody gets an answer, or an id, from a half-read one."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from tests.support.processes.registry import ask, record, until

from ottla.client.admin import Admin
from ottla.client.blocking.blocking import Blocking
from ottla.client.producer.producer import Producer
from ottla.model import limits
from ottla.registry.leader import ElectionOptions
from ottla.registry.store import StoreOptions
from ottla.registry.topic import WrongTopic
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.records import RegistryRecord
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.faults import Fault
from ottla.testing.registry import Registry

SESSION_MS = 1_500
POISON = b'{"keytype":"NOOP","magic":0,"poison":'
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), {"group.min.session.timeout.ms": 100}) as broker:
        yield broker


@pytest.fixture
def one(broker: EmbeddedBroker) -> Iterator[Registry]:
    """A registry over a topic of this test's own, with three subjects: s1, s2, s3 have the ids 1, 2, 3."""
    name = f"rereading-{next(_numbers)}"
    registry = Registry(broker.bootstrap, store=StoreOptions(name), election=ElectionOptions(name, SESSION_MS)).start()
    try:
        for number in (1, 2, 3):
            assert register(registry, f"s{number}", record("R", f"f{number}")) == number
        yield registry
    finally:
        broker.heal()
        registry.stop()


OLD = ["s1", "s2", "s3"]


def register(registry: Registry, subject: str, schema: str) -> int:
    with SchemaRegistryClient({"url": registry.url}) as client:
        return int(client.register_schema(subject, Schema(schema, "AVRO")))


def topic_of(registry: Registry) -> str:
    return registry._options.store.topic


def client_id(registry: Registry) -> str:
    return registry.url.replace("http://", "ottla-registry-")


def write(broker: EmbeddedBroker, topic: str, key: bytes = b'{"keytype":"NOOP","magic":0}') -> int:
    """Somebody else writes to the topic; the offset."""

    async def send() -> int:
        async with Producer(broker.bootstrap) as producer:
            return (await producer.send(topic, None, key, partition=0)).offset

    return asyncio.run(send())


def slow(broker: EmbeddedBroker, registry: Registry) -> Fault:
    """Each fetch of the registry takes a while: long enough to ask it something meanwhile."""
    return broker.fail("Fetch", delay="400ms", times=None, client_id=client_id(registry))


def cut(broker: EmbeddedBroker, topic: str, offset: int) -> None:
    """The broker's log loses its end, as by an unclean election."""
    node: Any = broker.node

    async def run() -> None:
        node.partitions.find(topic, 0).truncate_to(offset)

    assert broker._thread.loop is not None
    asyncio.run_coroutine_threadsafe(run(), broker._thread.loop).result(60)


def holds(broker: EmbeddedBroker, registry: Registry, subjects: list[str]) -> None:
    """The log gives no id twice, and the registry knows all of it."""
    ids: dict[int, str] = {}
    with Blocking(broker.bootstrap) as client:
        for each in client.read(topic_of(registry)):
            if b'"SCHEMA"' in (each.key or b"") and each.value is not None:
                value = json.loads(each.value)
                known = ids.setdefault(value["id"], value["schema"])
                assert known == value["schema"], f"id {value['id']} was given twice"
    assert ask(registry.url, "GET", "/subjects").content == subjects


def test_a_fetch_that_is_refused_takes_nothing_back(broker: EmbeddedBroker, one: Registry) -> None:
    refused = broker.fail("Fetch", "TOPIC_AUTHORIZATION_FAILED", client_id=client_id(one))
    held = slow(broker, one)
    write(broker, topic_of(one))
    until(lambda: refused.hits and held.hits)
    assert ask(one.url, "GET", "/subjects").content == OLD
    assert register(one, "s4", record("R", "f4")) == 4
    holds(broker, one, [*OLD, "s4"])


def test_a_topic_that_lost_its_end_is_read_anew_aside(broker: EmbeddedBroker, one: Registry) -> None:
    topic = topic_of(one)
    lost = write(broker, topic)
    held = slow(broker, one)
    write(broker, topic)
    until(lambda: held.hits)  # a fetch from behind both
    cut(broker, topic, lost)
    until(lambda: held.hits >= 2)  # from the start
    with ThreadPoolExecutor(1) as threads:
        registering = threads.submit(register, one, "s4", record("R", "f4"))
        for _ in range(10):
            assert ask(one.url, "GET", "/subjects").content in (OLD, [*OLD, "s4"])
        assert registering.result(60) == 4
    broker.heal()
    assert register(one, "s5", record("R", "f5")) == 5
    holds(broker, one, [*OLD, "s4", "s5"])


class Poison:
    """Applying certain records fails, each so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.hits: Counter[bytes] = Counter()
        applied = RegistryMachine.apply

        def apply(machine: RegistryMachine, record: RegistryRecord) -> Any:
            if record.key.startswith(POISON) and self.hits[record.key] < times:
                self.hits[record.key] += 1
                raise ZeroDivisionError("a defect")
            return applied(machine, record)

        monkeypatch.setattr(RegistryMachine, "apply", apply)


def test_an_exception_in_between(broker: EmbeddedBroker, one: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = Poison(monkeypatch, 1)
    held = slow(broker, one)
    write(broker, topic_of(one), POISON)
    until(lambda: held.hits)
    assert ask(one.url, "GET", "/subjects").content == OLD
    assert register(one, "s4", record("R", "f4")) == 4
    assert poison.hits[POISON] == 1
    holds(broker, one, [*OLD, "s4"])


def test_a_record_that_can_never_be_applied(
    broker: EmbeddedBroker, one: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named, old answers stand, nothing is written, the topic is not read over and over; and then it can be."""
    poison = Poison(monkeypatch, 1_000_000)
    with caplog.at_level(logging.ERROR):
        offset = write(broker, topic_of(one), POISON)
        until(lambda: poison.hits[POISON] == 2)
        answers = [ask(one.url, "POST", "/subjects/s4/versions", {"schema": record("R", "f4")}) for _ in range(3)]
    for answer in answers:
        assert (answer.status, answer.code) == (500, 50001)
        assert f"offset {offset} of {topic_of(one)}" in answer.content["message"]
    assert ask(one.url, "GET", "/subjects").content == OLD
    assert poison.hits[POISON] == 2
    told = [each for each in caplog.records if f"offset {offset}" in each.getMessage()]
    assert len(told) == 2 and told[0].exc_info
    late = Registry(
        broker.bootstrap, store=one._options.store, election=ElectionOptions(one._options.store.topic, SESSION_MS)
    )
    with pytest.raises(WrongTopic, match=f"offset {offset}"):
        late.start()
    assert poison.hits[POISON] == 4


def test_it_is_tried_again_later(broker: EmbeddedBroker, one: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REGISTRY_UNREADABLE_RETRY_MS", 50)
    poison = Poison(monkeypatch, 4)
    write(broker, topic_of(one), POISON)
    until(lambda: ask(one.url, "POST", "/subjects/s4/versions", {"schema": record("R", "f4")}).status == 200)
    assert poison.hits[POISON] == 4
    holds(broker, one, [*OLD, "s4"])


def test_registrations_under_trouble_of_all_kinds(
    broker: EmbeddedBroker, one: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Confluent's client on several threads: what was acknowledged is there, under an id of its own."""
    poison = Poison(monkeypatch, 1)
    topic = topic_of(one)

    def work(thread: int) -> dict[str, int]:
        return {f"w{thread}-{n}": register(one, f"w{thread}-{n}", record("R", f"w{thread}n{n}")) for n in range(8)}

    with ThreadPoolExecutor(4) as threads:
        working = [threads.submit(work, thread) for thread in range(3)]
        for error in ("TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_SERVER_ERROR", "CORRUPT_MESSAGE"):
            broker.fail("Fetch", error, client_id=client_id(one))
            write(broker, topic, POISON + error.encode())
        acknowledged = {name: found for each in working for name, found in each.result(60).items()}
    assert len(set(acknowledged.values())) == 24 and len(poison.hits) == 3
    holds(broker, one, sorted([*OLD, *acknowledged]))
    for name, number in acknowledged.items():
        assert ask(one.url, "GET", f"/subjects/{name}/versions/1").content["id"] == number


def test_a_topic_made_anew_answers_as_before_until_it_is_read(broker: EmbeddedBroker, one: Registry) -> None:
    topic = topic_of(one)

    async def replace() -> None:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.delete(topic)
            await admin.topics.create(topic, 1, configs={"cleanup.policy": "compact"})

    asyncio.run(replace())
    until(lambda: ask(one.url, "GET", "/subjects").content in (OLD, []))
    until(lambda: ask(one.url, "POST", "/subjects/new/versions", {"schema": record("R")}).status == 200)
    holds(broker, one, ["new"])
