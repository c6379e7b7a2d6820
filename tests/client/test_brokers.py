"""The same client against both brokers: a node of Ottla, and a real Kafka (marked compat)."""

import asyncio
import hashlib
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from tests.support.outcomes import codes
from tests.support.waiting import WAIT_S

from ottla import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Admin,
    ApiError,
    Cluster,
    OffsetOutOfRange,
    Producer,
    ProducerOptions,
    RangeReader,
    ReadOptions,
    Span,
    Time,
)
from ottla.client.admin.configs import Change, Operation
from ottla.client.admin.topics import ALL_RECORDS, NewTopic
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.ranges import ConsumedRecord
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import ConfigSource, Resource, ResourceType
from ottla.records.compress import Codec

_names = (f"client-{n}" for n in itertools.count())
NOW_MS = 1_700_000_000_000
T = TypeVar("T")


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    fixture = "ottla_broker" if request.param == "ottla" else "real_kafka"
    return str(request.getfixturevalue(fixture).bootstrap)


@pytest.fixture
def name() -> str:
    return next(_names)


def run(bootstrap: str, test: Callable[[Admin], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), Admin(bootstrap) as admin:
            await test(admin)

    asyncio.run(main())


async def eventually(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    """A real Kafka's brokers learn of changes a moment after the controller has answered."""
    async with asyncio.timeout(WAIT_S):
        while not holds(found := await look()):  # noqa: ASYNC110 - the broker is another process
            await asyncio.sleep(0.02)
    return found


async def read(cluster: Cluster, *spans: Span, options: ReadOptions | None = None) -> list[ConsumedRecord]:
    async with RangeReader(cluster, spans, options) as reader:
        return [record async for record in reader]


def test_topics(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        made = await admin.topics.create(name, 2, 1, {"retention.ms": "1000000"})
        assert (made.name, made.partitions, made.replication_factor) == (name, 2, 1)
        with pytest.raises(ApiError) as caught:
            await admin.topics.create(name)
        assert caught.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        topic = await eventually(lambda: admin.topics.describe(name), lambda each: each.partition_count == 2)
        assert topic.topic_id == made.topic_id and not topic.is_internal
        assert name in await admin.topics.names()
        await admin.topics.add_partitions(name, 5)
        await eventually(lambda: admin.topics.describe(name), lambda each: each.partition_count == 5)
        with pytest.raises(ApiError, match="INVALID_PARTITIONS"):
            await admin.topics.add_partitions(name, 3)
        assert await admin.topics.bounds(name) == dict.fromkeys(range(5), (0, 0))
        await admin.topics.delete(name)
        await eventually(admin.topics.names, lambda names: name not in names)
        with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await admin.topics.describe(name)

    run(bootstrap, test)


def test_usage_of_a_tenant(bootstrap: str, name: str, request: pytest.FixtureRequest) -> None:
    is_ottla = request.node.callspec.params["bootstrap"] == "ottla"

    async def test(admin: Admin) -> None:
        await admin.topics.create(f"{name}.t", 2, 1)
        used = await eventually(lambda: admin.tenants.usage(name), lambda each: each.partitions == 2)
        assert (used.topics, used.bytes_once, used.bytes_on_disk, used.unknown_nodes) == (1, 0, 0, ())
        rate = 0.0 if is_ottla else None  # a real Kafka does not tell
        assert (used.produced_byte_rate, used.consumed_byte_rate) == (rate, rate)
        assert bool(used.unmeasured_nodes) != is_ottla

    run(bootstrap, test)


def test_several_topics_each_on_its_own_account(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        topics = [NewTopic(name, 1, 1), NewTopic("bad name", 1, 1), NewTopic(f"{name}-x", 0, 1)]
        made = await admin.topics.create_each(topics)
        assert made.found.keys() == {name}
        assert codes(made) == {
            "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name}-x": ErrorCode.INVALID_PARTITIONS,
        }
        gone = await admin.topics.delete_each([name, "nothing-here"])
        assert gone.found == {name: None}
        assert codes(gone) == {"nothing-here": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        checked = await admin.topics.create(name, 3, 1, validate_only=True)
        assert checked.partitions == 3
        await eventually(admin.topics.names, lambda names: name not in names)

    run(bootstrap, test)


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_written_is_read(bootstrap: str, name: str, codec: Codec) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 3, 1)
        rng = random.Random(codec)
        sent = [(b"key-%d" % rng.randrange(50), rng.randbytes(rng.randrange(200))) for _ in range(2000)]
        options = ProducerOptions(codec=codec, batch_size_bytes=5000, linger_ms=1)
        async with Producer(admin.cluster, options) as producer:
            places = await asyncio.gather(*(producer.send(name, value, key) for key, value in sent))
        assert [each.offset for each in places if each.partition == 1] == list(
            range(sum(each.partition == 1 for each in places))
        )
        found = await read(admin.cluster, *(Span(name, index) for index in range(3)))
        assert len(found) == 2000
        by_place = {(each.partition, each.offset): (each.key, each.value) for each in found}
        assert [by_place[each.partition, each.offset] for each in places] == sent

    run(bootstrap, test)


def test_record_details_survive(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 1, 1)
        headers = (("h", b"1"), ("h", None), ("", b""), ("ü", b"\xff"))
        async with Producer(admin.cluster) as producer:
            for key, value in [(None, None), (b"", b""), (b"k", b"v")]:
                await producer.send(name, value, key, headers=headers, timestamp=NOW_MS)
        found = await read(admin.cluster, Span(name, 0))
        assert [(each.key, each.value) for each in found] == [(None, None), (b"", b""), (b"k", b"v")]
        assert {(each.headers, each.timestamp) for each in found} == {(headers, NOW_MS)}

    run(bootstrap, test)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acks(bootstrap: str, name: str, acks: int) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 1, 1)
        async with Producer(admin.cluster, ProducerOptions(acks=acks)) as producer:
            places = [await producer.send(name, b"%d" % n) for n in range(5)]
        assert [each.offset for each in places] == ([-1] * 5 if acks == 0 else list(range(5)))
        found: list[ConsumedRecord] = []
        while len(found) < 5:  # acks=0 promises nothing about when
            found = await read(admin.cluster, Span(name, 0))
        assert [each.value for each in found] == [b"%d" % n for n in range(5)]

    run(bootstrap, test)


def test_offsets_and_times(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 1, 1, {"message.timestamp.after.max.ms": str(2**62)})
        options = ProducerOptions(codec=Codec.GZIP, linger_ms=20)
        async with Producer(admin.cluster, options) as producer:
            await asyncio.gather(*(producer.send(name, b"v", timestamp=NOW_MS + n * 10) for n in range(20)))
            await producer.send(name, b"old", timestamp=NOW_MS)
        assert (await admin.topics.offsets(name, Time(NOW_MS + 45)))[0].offset == 5
        assert (await admin.topics.offsets(name, Time(NOW_MS + 500)))[0].offset == -1
        latest = (await admin.topics.offsets(name, MAX_TIMESTAMP))[0]
        assert (latest.offset, latest.timestamp) == (19, NOW_MS + 190)
        found = await read(admin.cluster, Span(name, 0, Time(NOW_MS + 170)))
        assert [each.offset for each in found] == [17, 18, 19, 20]
        assert [each.offset for each in await read(admin.cluster, Span(name, 0, 7, 11))] == [7, 8, 9, 10]

    run(bootstrap, test)


def test_deleted_records_are_a_clear_error(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 2, 1)
        async with Producer(admin.cluster) as producer:
            for n in range(10):
                await producer.send(name, b"%d" % n, partition=n % 2)
        assert await admin.topics.delete_records(name, {0: 3, 1: ALL_RECORDS}) == {0: 3, 1: 5}
        assert await admin.topics.bounds(name) == {0: (3, 5), 1: (5, 5)}
        with pytest.raises(OffsetOutOfRange, match=f"offset 1 of {name}-0 is gone: the log now starts at 3"):
            await read(admin.cluster, Span(name, 0, 1))
        assert [each.offset for each in await read(admin.cluster, Span(name, 0, EARLIEST, LATEST))] == [3, 4]
        with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE"):
            await admin.topics.delete_records(name, {0: 99})

    run(bootstrap, test)


def test_following(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 2, 1)
        async with (
            Producer(admin.cluster) as producer,
            RangeReader(admin.cluster, [Span(name, index, LATEST, None) for index in range(2)]) as reader,
        ):
            records = reader.records()
            for n in range(4):
                waiting = asyncio.ensure_future(anext(records))
                if n == 0:
                    await eventually(lambda first=waiting: asyncio.sleep(0, reader.positions() or first.done()), bool)
                await producer.send(name, b"%d" % n, partition=n % 2)
                found = await waiting
                assert (found.partition, found.value) == (n % 2, b"%d" % n)
            await records.aclose()

    run(bootstrap, test)


def test_too_large(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 1, 1, {"max.message.bytes": "2000"})
        async with Producer(admin.cluster, ProducerOptions(linger_ms=20)) as producer:
            values = [bytes([n]) * 300 for n in range(40)]
            await asyncio.gather(*(producer.send(name, value) for value in values))
            with pytest.raises(ApiError, match="MESSAGE_TOO_LARGE"):
                await producer.send(name, bytes(5000))
        assert [each.value for each in await read(admin.cluster, Span(name, 0))] == values

    run(bootstrap, test)


def test_configs(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        await admin.topics.create(name, 1, 1)
        resource = Resource.topic(name)
        await admin.configs.set(resource, {"retention.ms": "12345", "cleanup.policy": "compact"})
        await admin.configs.alter(resource, [Change("cleanup.policy", "delete", Operation.APPEND)])
        entries = await eventually(
            lambda: admin.configs.describe(resource, documentation=True),
            lambda entries: any(each.value in ("compact,delete", "delete,compact") for each in entries),
        )
        found = {each.name: each for each in entries}
        assert found["retention.ms"].value == "12345" and found["retention.ms"].source == ConfigSource.TOPIC
        assert sorted(str(found["cleanup.policy"].value).split(",")) == ["compact", "delete"]
        assert found["segment.bytes"].is_default and found["segment.bytes"].documentation
        await admin.configs.set(resource, {"retention.ms": None})
        await eventually(
            lambda: admin.configs.describe(resource, ["retention.ms"]),
            lambda entries: entries[0].is_default and entries[0].value == "604800000",
        )
        with pytest.raises(ApiError, match="INVALID_CONFIG"):
            await admin.configs.set(resource, {"retention.ms": "soon"})
        (node,) = [each.node_id for each in (await admin.nodes.describe()).brokers]
        entries = await admin.configs.describe(Resource.broker(node))
        assert len(entries) > 300 and any(each.name == "log.retention.hours" for each in entries)
        assert Resource.topic(name) in await admin.configs.resources([ResourceType.TOPIC])

    run(bootstrap, test)


def test_nodes(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        cluster = await admin.nodes.describe()
        (broker,) = cluster.brokers
        assert broker.address.port == int(bootstrap.rpartition(":")[2]) and len(cluster.cluster_id) == 22
        versions = await admin.nodes.api_versions()
        assert versions[1].high == 18 and versions[3] == (0, 13)
        features = {each.name: each for each in await admin.nodes.features()}
        assert features["metadata.version"].finalized is not None
        await admin.topics.create(name, 2, 1)
        async with Producer(admin.cluster) as producer:
            await producer.send(name, bytes(1000), partition=0)
            producers = await admin.topics.producers(TopicPartition(name, 0))
        assert [each.last_sequence for each in producers] == [0]
        (directory,) = await eventually(
            admin.nodes.log_dirs, lambda found: sum(each.topic == name for each in found[0].replicas) == 2
        )
        sizes = {each.partition: each.size_bytes for each in directory.replicas if each.topic == name}
        assert sizes[0] > 1000 and sizes[1] == 0 and directory.total_bytes > 0
        quorum = await admin.nodes.quorum()
        assert quorum.leader_id == broker.node_id and quorum.voters[0].node_id == broker.node_id

    run(bootstrap, test)


def test_topics_come_into_being_when_written(bootstrap: str, name: str) -> None:
    async def test(admin: Admin) -> None:
        async with Producer(admin.cluster) as producer:
            assert (await producer.send(name, b"first")).offset == 0
        with pytest.raises(ApiError, match="there is no topic"):
            await read(admin.cluster, Span(f"{name}-other", 0))

    run(bootstrap, test)


def test_blocking(bootstrap: str, name: str) -> None:
    with Blocking(bootstrap) as client:
        client.admin.topics.create(name, 2, 1)
        assert client.send(name, b"v", b"k", partition=1).offset == 0
        pairs = [(b"%d" % n, b"value-%d" % n) for n in range(500)]
        assert len(client.send_all(name, pairs)) == 500
        found = list(client.read(name))
        assert len(found) == 501
        values = sorted(each.value or b"" for each in found)
        assert (
            hashlib.sha256(b"".join(values)).digest()
            == hashlib.sha256(b"".join(sorted([b"v", *(value for _, value in pairs)]))).digest()
        )
        assert [each.value for each in client.read(name, 1, start=0, end=1)] == [b"v"]
        assert next(client.read(name, end=None)).offset == 0  # an iterator that is left early is closed
