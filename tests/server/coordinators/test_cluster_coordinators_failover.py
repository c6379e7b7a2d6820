"""Coordinators of a cluster whose node dies, or is paused and comes back: work goes on elsewhere, and nothing is lost,
doubled, or written by the one that is not in charge any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.client.sharing import nothing_left, share_group, sharer
from tests.server.three import GROUP, PROPERTIES, TRANSACTION, around, ask, coordinator, create, until
from tests.support.processes.clusters import METADATA_VERSION, OttlaCluster, running
from tests.support.requests.raw import RawConnection

from ottla import Admin, ApiError, ClientError, Cluster, ConsumerOptions, ProducerOptions
from ottla import Consumer as Consumer_
from ottla import Producer as Producer_
from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.wire.frame import request_frame
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

COMMIT_VERSION, FETCH_VERSION = 8, 8


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaCluster]:
    with running(OttlaCluster(tmp_path_factory.mktemp("three"), properties=PROPERTIES)) as started:
        assert isinstance(started, OttlaCluster)
        yield started


@pytest.fixture(autouse=True)
def whole(cluster: OttlaCluster) -> Iterator[None]:
    yield
    whole_again(cluster)


def whole_again(cluster: OttlaCluster) -> None:
    """Whoever was killed is back, and in sync."""
    for id in cluster.ids:
        if id not in cluster.running:
            cluster.start_node(id)
    until(lambda: all(len(each.isr_nodes) == len(each.replica_nodes) for each in _partitions(cluster)))


def _partitions(cluster: OttlaCluster) -> list[Any]:
    answer = cluster.ask(MetadataRequest(topics=None), METADATA_VERSION)
    return [each for topic in answer.topics for each in topic.partitions]


def fill(cluster: OttlaCluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number, key=b"%d" % number)
    assert producer.flush(30) == 0


def commit(group: str, topic: str, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(
        group_id=group, member_id="", topics=[OffsetCommitRequest.Topic(name=topic, partitions=[partition])]
    )


def committed(cluster: OttlaCluster, id: int, group: str, topic: str) -> int:
    asked = OffsetFetchRequest.Group(
        group_id=group, topics=[OffsetFetchRequest.Group.Topics(name=topic, partition_indexes=[0])]
    )
    answer = ask(cluster, id, OffsetFetchRequest(groups=[asked], require_stable=True), FETCH_VERSION)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_when_its_coordinator_dies(cluster: OttlaCluster, protocol: str) -> None:
    topic = group = f"read-{protocol}"
    create(cluster, topic, *around(1, 2, 3))
    fill(cluster, topic, 300)
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumers = [Consumer(settings) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe([topic])
    # A member that has asked to join waits for the others to be polled, and so does all it asks after that (as with
    # Kafka): an outsider asks how far the group is.
    outsider = Consumer(settings)
    places = [TopicPartition(topic, index) for index in range(3)]
    seen: set[tuple[int, int]] = set()

    def read(count: int) -> bool:
        """Has the group read and committed all of these? What a rebalance kept from being committed is read again."""
        for consumer in consumers:
            batch = [each for each in consumer.consume(50, 0.1) if not each.error()]
            seen.update((each.partition(), each.offset()) for each in batch)
            with contextlib.suppress(KafkaException):
                if batch:
                    consumer.commit(asynchronous=False)
        if len(seen) < count:
            return False
        return sum(each.offset for each in outsider.committed(places, 20)) == count

    until(lambda: read(300))
    victim = coordinator(cluster, GROUP, group)
    cluster.kill(victim)
    fill(cluster, topic, 300)
    until(lambda: read(600))
    assert coordinator(cluster, GROUP, group) != victim
    for consumer in (*consumers, outsider):
        consumer.close()


def commit_transaction(producer: Producer) -> None:
    """As its documentation wants it: what may be tried again is, with the same transaction."""
    for _ in range(3):
        try:
            producer.commit_transaction(30)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
    producer.commit_transaction(30)


def test_a_pipeline_of_librdkafka_copies_exactly_once_when_its_coordinator_dies(cluster: OttlaCluster) -> None:
    create(cluster, "copy-in", *around(1, 2, 3))
    create(cluster, "copy-out", *around(3, 1, 2))
    count = 900
    fill(cluster, "copy-in", count)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "copier"})
    producer.init_transactions(30)
    victim = coordinator(cluster, TRANSACTION, "copier")
    # librdkafka never asks again who coordinates a group that a transaction's offsets are for.
    group = next(name for n in range(100) if coordinator(cluster, GROUP, name := f"copying-{n}") != victim)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["copy-in"])
    copied = 0

    def copy() -> bool:
        nonlocal copied
        batch = [each for each in consumer.consume(100, 0.5) if not each.error()]
        if not batch:
            return False
        producer.begin_transaction()
        try:
            for each in batch:
                producer.produce("copy-out", each.value(), key=each.key())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
            if copied >= 300 and victim in cluster.running:
                cluster.kill(victim)
            commit_transaction(producer)
            copied += len(batch)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(30)
            for each in consumer.committed(consumer.assignment(), 30):
                consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
        return copied >= count

    until(copy)
    assert victim not in cluster.running
    consumer.close()
    assert sorted(_read_all(cluster, "copy-out")) == list(range(count))


def test_a_pipeline_copies_exactly_once_when_its_coordinators_die(cluster: OttlaCluster) -> None:
    create(cluster, "pipe-in", *around(1, 2, 3))
    create(cluster, "pipe-out", *around(2, 3, 1))
    count = 600
    fill(cluster, "pipe-in", count)
    done = 0

    async def work() -> None:
        """Until somebody fails in a way that wants a new producer: then the next one takes over."""
        nonlocal done
        reading = ConsumerOptions(
            group_id="pipe", enable_auto_commit=False, auto_offset_reset="earliest", max_poll_records=50
        )
        writing = ProducerOptions(transactional_id="pipe")
        async with (
            Cluster(cluster.bootstrap) as client,
            Consumer_(client, reading) as consumer,
            Producer_(client, writing) as producer,
        ):
            await producer.init_transactions()
            consumer.subscribe(["pipe-in"])
            while done < count:
                found = await consumer.poll(timeout_ms=200)
                if not found:
                    continue
                async with producer.transaction() as txn:
                    for records in found.values():
                        for record in records:
                            await producer.post("pipe-out", record.value, key=record.key)
                    ends = {partition: records[-1].offset + 1 for partition, records in found.items()}
                    await txn.send_offsets(ends, consumer.group_metadata())
                    await die()
                done += sum(map(len, found.values()))

    victims = [(200, TRANSACTION), (400, GROUP)]

    async def die() -> None:
        if victims and done >= victims[0][0]:
            _, kind = victims.pop(0)
            await asyncio.to_thread(whole_again, cluster)
            cluster.kill(await asyncio.to_thread(coordinator, cluster, kind, "pipe"))

    async def pipeline() -> None:
        async with asyncio.timeout(90):
            while done < count:
                with contextlib.suppress(ApiError, ClientError):
                    await work()

    asyncio.run(pipeline())
    assert not victims
    assert sorted(_read_all(cluster, "pipe-out")) == list(range(count))


def _read_all(cluster: OttlaCluster, topic: str) -> list[int]:
    """All that is committed, up to what the high watermark is now: so there must be no open transaction, either."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "check", "isolation.level": "read_committed"}
    )
    places = [TopicPartition(topic, index, 0) for index in range(3)]
    ends = [consumer.get_watermark_offsets(each, 20)[1] for each in places]
    consumer.assign(places)
    found: list[int] = []

    def done() -> bool:
        found.extend(int(each.value()) for each in consumer.consume(500, 0.5) if not each.error())
        return all(each.offset >= end for each, end in zip(consumer.position(places), ends, strict=True))

    until(done)
    consumer.close()
    return found


def test_a_share_group_goes_on_when_nodes_die(cluster: OttlaCluster) -> None:
    """Its group coordinator, share coordinators and share partitions' leaders are on all three."""
    create(cluster, "queue", *around(1, 2, 3))
    count = 600
    fill(cluster, "queue", count)
    seen: dict[bytes, int] = {}

    async def work() -> None:
        async with asyncio.timeout(90), Cluster(cluster.bootstrap) as client:
            group = await share_group(client, **{"share.record.lock.duration.ms": "2000"})
            async with sharer(client, group, "queue") as consumer:
                victim = 0
                while len(seen) < count:
                    for each in await consumer.poll(50, timeout_ms=300):
                        seen[each.value or b""] = seen.get(each.value or b"", 0) + 1
                    if not victim and len(seen) > 150:
                        victim = coordinator(cluster, GROUP, group)
                        cluster.kill(victim)
                await consumer.commit()
            async with sharer(client, group, "queue") as consumer:
                # What the node that died had handed out and not yet heard of comes again.
                left = [each for _ in range(10) for each in await consumer.poll(timeout_ms=300)]
            assert len({each.partition for each in left}) <= 1
            async with sharer(client, group, "queue") as consumer:
                assert await nothing_left(consumer)
            places = await Admin(client).shares.places(group)
            assert [place.lag for place in places] == [0, 0, 0]

    asyncio.run(work())
    assert sorted(map(int, seen)) == list(range(count))


def test_a_coordinator_that_was_paused_cannot_write_any_more(cluster: OttlaCluster) -> None:
    create(cluster, "paused", *around(1))
    group = "paused"
    zombie = coordinator(cluster, GROUP, group)
    until(lambda: _commit_code(cluster, zombie, group, 3) == 0)
    with RawConnection(cluster.address(zombie)) as connection:
        cluster.pause(zombie)
        try:
            connection.send(request_frame(commit(group, "paused", 5), COMMIT_VERSION, 1, "raw"))
            others = [id for id in cluster.ids if id != zombie]
            successor = until(lambda: next((id for id in others if _coordinates(cluster, id, group, zombie)), 0))
            assert committed(cluster, successor, group, "paused") == 3
            assert _commit_code(cluster, successor, group, 7) == 0
        finally:
            cluster.resume(zombie)
        late = connection.decode(OffsetCommitRequest.key, COMMIT_VERSION, connection.receive(), 1)
    assert isinstance(late, OffsetCommitResponse)
    assert late.topics[0].partitions[0].error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    # If it only found that nobody fetched from it any more, it may have to learn yet why.
    until(lambda: _commit_code(cluster, zombie, group, 9) == ErrorCode.NOT_COORDINATOR)
    assert committed(cluster, successor, group, "paused") == 7


def _coordinates(cluster: OttlaCluster, id: int, group: str, not_any_more: int) -> bool:
    found = coordinator(cluster, GROUP, group, id)
    return found == id and found != not_any_more


def test_nothing_is_acknowledged_that_too_few_replicas_have(cluster: OttlaCluster) -> None:
    create(cluster, "few", *around(1))
    keeper = coordinator(cluster, GROUP, "few")
    with Blocking(cluster.bootstrap) as client:
        journal = Resource(ResourceType.TOPIC, "__consumer_offsets")
        client.admin.configs.set(journal, {"min.insync.replicas": "3"})
        until(lambda: _commit_code(cluster, keeper, "few", 1) == 0)
        cluster.kill(next(id for id in cluster.ids if id != keeper))
        until(lambda: _commit_code(cluster, keeper, "few", 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE)
        client.admin.configs.set(journal, {"min.insync.replicas": "2"})
        until(lambda: _commit_code(cluster, keeper, "few", 4) == 0)
    assert committed(cluster, keeper, "few", "few") == 4


def _commit_code(cluster: OttlaCluster, id: int, group: str, offset: int) -> int:
    """For a group that has the name of its topic."""
    answer = ask(cluster, id, commit(group, group, offset), COMMIT_VERSION)
    return int(answer.topics[0].partitions[0].error_code)
