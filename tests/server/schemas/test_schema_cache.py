"""What a broker knows of `_schemas`: nothing is judged by a topic that is half read."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.requests.unreadable import no_gzip

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record as LogRecord
from ottla.records.record import records
from ottla.schemas.registry.commands import Register
from ottla.schemas.registry.entities import SchemaDraft
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.records import RegistryRecord
from ottla.server.loop.later import Later
from ottla.server.schemas.schema_cache import TOPIC, SchemaCache

HERE, ELSEWHERE = 1, 2
NOTHING = RegistryRecord(b'{"keytype":"NOOP","magic":0}', None)


class Topic:
    """`_schemas` with so many schemas, one batch each: ids 1, 2, …; answers as a partition, and as another node."""

    def __init__(self, count: int) -> None:
        machine = RegistryMachine()
        self.batches: list[bytes] = []
        for number in range(1, count + 1):
            schema = json.dumps({"type": "record", "name": f"R{number}", "fields": []})
            for record in machine.decide(Register(f"s{number}", SchemaDraft(schema, None)), 0).records:
                machine.apply(record)
                self.batches.append(self.batch(len(self.batches), record))
        self.cuts, self.epoch_start, self.fetches = 0, 0, 0
        self.high_watermark = self.last_stable_offset = len(self.batches)

    def batch(self, offset: int, record: RegistryRecord) -> bytes:
        return bytes(
            build_batch([LogRecord(offset, 0, record.key, record.value, ())], base_offset=offset, leader_epoch=1)
        )

    @property
    def log(self) -> Any:
        return SimpleNamespace(log_start_offset=0, next_offset=len(self.batches))

    def fetch(self, offset: int, max_bytes: int, *, isolation: int) -> Any:
        """One batch at a time, as if each were as large as a slice."""
        self.fetches += 1
        data = self.batches[offset]
        return SimpleNamespace(records=SimpleNamespace(read=lambda: data), aborted=[])


def call_soon(what: Callable[..., object], *args: object) -> None:
    asyncio.get_running_loop().call_soon(what, *args)


class Cluster:
    """What the cache asks. `leader` is where the topic is led; `asked` are questions to that node."""

    def __init__(self, topic: Topic, leader: int) -> None:
        self.topic, self.leader = topic, leader
        self.asked: list[tuple[Any, Later[Any]]] = []
        self.now = 0
        metadata: Any = SimpleNamespace(node_id=HERE, state=SimpleNamespace(topics=self))
        runtime: Any = SimpleNamespace(steady_ms=lambda: self.now, loop=SimpleNamespace(call_soon=call_soon))
        storage: Any = SimpleNamespace(
            partitions=SimpleNamespace(find=lambda topic, index: self.topic),
            looks=SimpleNamespace(when_quiet=lambda what: what()),
        )
        peers: Any = SimpleNamespace(ask=self.ask)
        self.schemas = SchemaCache(runtime, storage, metadata, peers)

    def get(self, name: str) -> Any:
        assert name == TOPIC
        return SimpleNamespace(id=b"i" * 16, partitions=[SimpleNamespace(leader=self.leader)])

    def ask(self, leader: int, request: Any, purpose: str) -> Later[Any]:
        later: Later[Any] = Later()
        self.asked.append((request, later))
        return later

    def answer_end(self, offset: int, error: ErrorCode = ErrorCode.NONE) -> None:
        _, later = self.asked.pop()
        found = SimpleNamespace(error_code=error.value, offset=offset)
        later.set(SimpleNamespace(topics=[SimpleNamespace(partitions=[found])]))

    def answer_records(self, error: ErrorCode = ErrorCode.NONE, diverging: int = -1) -> None:
        request, later = self.asked.pop()
        wanted = request.topics[0].partitions[0]
        records = b"" if error or diverging >= 0 else self.topic.batches[wanted.fetch_offset]
        found = SimpleNamespace(
            error_code=error.value,
            log_start_offset=0,
            records=records,
            aborted_transactions=None,
            last_stable_offset=len(self.topic.batches),
            diverging_epoch=SimpleNamespace(end_offset=diverging),
        )
        later.set(SimpleNamespace(error_code=0, responses=[SimpleNamespace(partitions=[found])]))


def on_loop(work: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return work()

    return asyncio.run(run())


async def whole(schemas: SchemaCache) -> None:
    for _ in range(100):
        if schemas.catch_up():
            return
        await asyncio.sleep(0)
    raise AssertionError("the end is not reached")


def known(schemas: SchemaCache, count: int) -> bool:
    return all(schemas.known.find(number) is not None for number in range(1, count + 1))


def test_a_long_topic_is_read_in_slices() -> None:
    topic = Topic(20)
    cluster = Cluster(topic, HERE)

    async def run() -> None:
        assert not cluster.schemas.catch_up()
        assert topic.fetches == 1
        turns = 0
        while not cluster.schemas._is_whole:
            turns += 1
            await asyncio.sleep(0)
        assert turns >= len(topic.batches) - 2  # others had their turn in between
        assert cluster.schemas.catch_up() and known(cluster.schemas, 20)

    asyncio.run(run())


def test_a_log_that_begins_in_the_middle_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes behind its beginning counts; the whole batch was passed over."""
    topic = Topic(2)
    found = [record for batch in topic.batches for record in records(memoryview(batch))]
    whole_topic = bytes(build_batch(found, base_offset=0, leader_epoch=1))
    topic.batches = [whole_topic] * len(found)  # whatever offset is asked for
    start = next(each.offset for each in found if b'"s2"' in (each.key or b""))
    monkeypatch.setattr(Topic, "log", SimpleNamespace(log_start_offset=start, next_offset=len(found)))
    cluster = Cluster(topic, HERE)
    on_loop(cluster.schemas.catch_up)
    assert cluster.schemas.known.find(1) is None and cluster.schemas.known.find(2) is not None


def test_a_new_leader_that_does_not_know_what_was_acknowledged() -> None:
    topic = Topic(1)
    topic.epoch_start, topic.high_watermark, topic.last_stable_offset = len(topic.batches), 0, 0
    cluster = Cluster(topic, HERE)
    assert not on_loop(cluster.schemas.catch_up)
    topic.high_watermark = topic.last_stable_offset = len(topic.batches)

    asyncio.run(whole(cluster.schemas))
    assert known(cluster.schemas, 1)


def test_a_log_that_was_cut_and_grew_again_is_read_anew() -> None:
    cluster = Cluster(Topic(1), HERE)

    async def run() -> None:
        await whole(cluster.schemas)
        cluster.topic.batches = [cluster.topic.batch(at, NOTHING) for at in range(2)]
        cluster.topic.high_watermark = cluster.topic.last_stable_offset = 2
        cluster.topic.cuts += 1
        await whole(cluster.schemas)

    asyncio.run(run())
    assert cluster.schemas.known.find(1) is None


def test_a_disk_that_fails_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(1)
    cluster = Cluster(topic, HERE)

    def fails(*_: Any, **__: Any) -> Any:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)

    monkeypatch.setattr(topic, "fetch", fails)
    assert not on_loop(cluster.schemas.catch_up)


def test_a_topic_led_elsewhere_counts_when_its_end_was_reached() -> None:
    topic = Topic(2)
    end = len(topic.batches)
    cluster = Cluster(topic, ELSEWHERE)
    assert not cluster.schemas.catch_up()
    cluster.answer_end(0, ErrorCode.OFFSET_NOT_AVAILABLE)
    assert not cluster.schemas.catch_up()
    cluster.answer_end(end)
    for _ in range(end - 1):
        cluster.answer_records()
        assert not cluster.schemas.catch_up()
    cluster.answer_records()
    assert cluster.schemas.catch_up() and known(cluster.schemas, 2)


def test_an_answer_without_the_topic_is_as_good_as_none() -> None:
    cluster = Cluster(Topic(1), ELSEWHERE)
    assert not cluster.schemas.catch_up()
    cluster.asked.pop()[1].set(SimpleNamespace(topics=[]))
    assert not cluster.schemas.catch_up()
    cluster.answer_end(1)
    cluster.asked.pop()[1].set(SimpleNamespace(error_code=0, responses=[]))
    assert not cluster.schemas.catch_up()
    cluster.answer_end(1)
    cluster.answer_records()
    assert cluster.schemas.catch_up() and known(cluster.schemas, 1)


@pytest.mark.parametrize("how", [{"error": ErrorCode.OFFSET_OUT_OF_RANGE}, {"diverging": 0}, {}], ids=str)
def test_a_topic_that_was_cut_elsewhere_does_not_count_before_it_was_read(how: dict[str, Any]) -> None:
    topic = Topic(2)
    end = len(topic.batches)
    cluster = Cluster(topic, ELSEWHERE)
    cluster.schemas.catch_up()
    cluster.answer_end(end)
    for _ in range(end):
        cluster.answer_records()
    assert cluster.schemas.catch_up()
    cluster.now = limits.SCHEMAS_STALE_MS
    assert cluster.schemas.catch_up()  # what is known may be a moment old
    topic.batches = [topic.batch(at, NOTHING) for at in range(end + 1)]
    if how:
        cluster.answer_end(end + 1)
        cluster.answer_records(**how)
    else:
        cluster.answer_end(end - 1)
    assert not cluster.schemas.catch_up()
    while cluster.asked:
        cluster.answer_records()
    assert cluster.schemas.catch_up() and cluster.schemas.known.find(1) is None


def test_a_record_that_cannot_be_taken_in_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(Topic(3), HERE)
    applied = RegistryMachine.apply

    def apply(machine: RegistryMachine, record: RegistryRecord) -> Any:
        if b'"subject":"s2"' in record.key:
            raise ZeroDivisionError("a defect")
        return applied(machine, record)

    monkeypatch.setattr(RegistryMachine, "apply", apply)

    with caplog.at_level(logging.ERROR):
        asyncio.run(whole(cluster.schemas))
    assert [cluster.schemas.known.find(number) is not None for number in (1, 2, 3)] == [True, False, True]
    assert caplog.text.count("passed over") == 1


@pytest.mark.parametrize("leader", [HERE, ELSEWHERE])
def test_a_batch_that_cannot_be_unpacked_is_passed_over(caplog: pytest.LogCaptureFixture, leader: int) -> None:
    """A broker takes a packed batch unread. One of 76 bytes stopped every topic under a contract for good."""
    topic = Topic(2)
    end = len(topic.batches)
    topic.batches.insert(1, bytes(no_gzip(1)))
    topic.batches[2:] = [moved(batch, at) for at, batch in enumerate(topic.batches[2:], 2)]
    topic.high_watermark = topic.last_stable_offset = end + 1
    cluster = Cluster(topic, leader)

    async def run() -> None:
        if leader == ELSEWHERE:
            assert not cluster.schemas.catch_up()
            cluster.answer_end(end + 1)
            while cluster.asked:
                cluster.answer_records()
        await whole(cluster.schemas)

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert known(cluster.schemas, 2)
    assert caplog.text.count("passed over") == 1


def moved(batch: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + batch[8:]
