"""Clients when brokers die, ours or a real Kafka's: what was acknowledged is there once, and work soon goes on."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pytest
from tests.client import nodes
from tests.client.nodes import KINDS, three_nodes
from tests.support.processes.clusters import ProcessCluster
from tests.support.waiting import WAIT_S

from ottla import (
    Admin,
    ApiError,
    Cluster,
    Consumer,
    ConsumerOptions,
    Producer,
    ProducerOptions,
    RangeReader,
    Span,
)
from ottla.client.admin.topics import NewTopic
from ottla.client.cluster import Purpose
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model.ids import TopicPartition

PROPERTIES = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "3",
    # A node that is paused is noticed soon; Kafka's default would be 9 s.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@pytest.fixture(scope="module", params=KINDS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    yield from three_nodes(request, tmp_path_factory, PROPERTIES)


# A node that is killed and started again may be a Kafka on a busy machine.
run = partial(nodes.run, within_s=240)


async def created(admin: Admin, name: str, *replicas: list[int]) -> None:
    await admin.topics.create_each([NewTopic(name, -1, -1, assignments=dict(enumerate(replicas)))])
    await all_in_sync(admin, name)


async def all_in_sync(admin: Admin, name: str) -> None:
    """Until every replica of the topic has caught up."""

    async def caught_up() -> bool:
        partitions = (await admin.topics.describe(name)).partitions
        return all(each.leader >= 0 and len(each.isr) == len(each.replicas) for each in partitions)

    await until(caught_up)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    while True:
        with contextlib.suppress(ApiError):  # whoever is asked may not know the topic yet
            if await holds():
                return
        await asyncio.sleep(0.05)


async def values(cluster: Cluster, topic: str, partitions: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(partitions)]
    async with RangeReader(cluster, [Span(topic, index) for index in range(partitions)]) as reader:
        async for record in reader:
            assert record.value is not None
            found[record.partition].append(int(record.value))
    return found


def test_a_leader_is_killed_under_load(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        await created(admin, "killed", [1, 2, 3], [2, 3, 1], [3, 1, 2])
        sent, stop, stopped = [0], asyncio.Event(), asyncio.Event()
        received: list[int] = []

        async def produce() -> None:
            async with Producer(admin.cluster, ProducerOptions(acks=-1)) as producer:
                while not stop.is_set():
                    for partition in range(3):
                        await producer.send("killed", b"%d" % sent[0], partition=partition)
                    sent[0] += 1
            stopped.set()

        async def consume() -> None:
            options = ConsumerOptions(group_id="killed", auto_offset_reset="earliest")
            async with Consumer(cluster.bootstrap, options) as consumer:
                consumer.subscribe(["killed"])
                while not stopped.is_set() or len(received) < 3 * sent[0]:
                    for records in (await consumer.poll(timeout_ms=200)).values():
                        received.extend(int(record.value or b"") for record in records)

        async def goes_on(least: int) -> None:
            async def far_enough() -> bool:
                if working.done():
                    await working  # it failed; says why
                return sent[0] >= least

            await until(far_enough)

        working = asyncio.gather(produce(), consume())
        try:
            await goes_on(50)
            await asyncio.to_thread(cluster.kill, 1)
            await goes_on(sent[0] + 50)
            await asyncio.to_thread(cluster.start_node, 1)
            await goes_on(sent[0] + 20)
        finally:
            stop.set()
        await working
        expected = list(range(sent[0]))
        assert await values(admin.cluster, "killed", 3) == [expected] * 3
        assert sorted(received) == sorted(expected * 3)

    run(cluster, test)


def test_bootstrap_with_the_dead(cluster: ProcessCluster) -> None:
    """One of the addresses refuses, another one never answers: the third one does."""

    async def test(admin: Admin) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:  # lets one in, and says nothing
            port = silent.getsockname()[1]
            bootstrap = f"127.0.0.1:1,127.0.0.1:{port},{cluster.address(2)}"
            options = ClientOptions(parse_bootstrap(bootstrap), request_timeout_ms=60_000)
            async with asyncio.timeout(WAIT_S), Admin(options) as other:
                # On a busy machine one may be away for a moment.
                assert len((await other.nodes.describe(fenced=True)).brokers) == 3

    run(cluster, test)


def test_a_broker_that_stands_still_does_not_stop_the_others(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        await created(admin, "paused", [2, 3, 1], [3, 1, 2])
        options = ClientOptions(parse_bootstrap(cluster.bootstrap))
        async with Cluster(options) as own, Producer(own, ProducerOptions(acks=-1)) as producer:
            await producer.send("paused", b"0", partition=0)
            await producer.send("paused", b"0", partition=1)
            cluster.pause(2)
            try:
                # Neither waits for the other: that partition's leader lives, and its ISR shrinks.
                await producer.send("paused", b"1", partition=1)
                async with asyncio.timeout(25):
                    await producer.send("paused", b"1", partition=0)
            finally:
                cluster.resume(2)
        await all_in_sync(admin, "paused")  # the one that stood still must first learn that it no longer leads
        assert await values(admin.cluster, "paused", 2) == [[0, 1], [0, 1]]

    run(cluster, test)


def test_the_replica_next_door_is_read(cluster: ProcessCluster) -> None:
    async def test(admin: Admin) -> None:
        await created(admin, "near", [1, 2, 3])
        async with Producer(admin.cluster, ProducerOptions(acks=-1)) as producer:
            for number in range(20):
                await producer.send("near", b"%d" % number, partition=0)
        options = ConsumerOptions(client_rack="c", auto_offset_reset="earliest")
        async with Cluster(cluster.bootstrap) as own, Consumer(own, options) as consumer:
            consumer.assign([TopicPartition("near", 0)])
            found: list[int] = []
            while len(found) < 20:
                for records in (await consumer.poll(timeout_ms=500)).values():
                    found += [int(record.value or b"") for record in records]
            assert found == list(range(20))
            leader = await own.leader(TopicPartition("near", 0))
            asked = {address.port for (address, purpose) in own._connections if purpose is Purpose.FETCH}
            assert leader[0] != 3 and cluster.ports[3] in asked

    run(cluster, test)
