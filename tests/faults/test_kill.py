"""kill -9 under load, many times: every acknowledged record is there, once, in order, with its content."""

from __future__ import annotations

import asyncio
import hashlib
import random
from pathlib import Path

import pytest
from tests.support.processes.node import OttlaNode

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.consumer.ranges import RangeReader, Span
from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.model.errors import ApiError
from ottla.records.compress import Codec

ROUNDS = 8
PARTITIONS = 3


def value_of(writer: int, number: int) -> bytes:
    """Content that proves itself: writer, number, padding that follows from both."""
    padding = hashlib.sha256(b"%d/%d" % (writer, number)).hexdigest().encode() * (1 + number % 5)
    return b"%d %d %s" % (writer, number, padding)


async def write(cluster: Cluster, writer: int, acknowledged: dict[int, list[int]], stop: asyncio.Event) -> None:
    """One idempotent producer that goes on over every crash; notes what was acknowledged, in order."""
    codec = [Codec.NONE, Codec.LZ4, Codec.ZSTD][writer % 3]
    options = ProducerOptions(codec=codec, linger_ms=2, request_timeout_ms=5_000, delivery_timeout_ms=60_000)
    async with Producer(cluster, options) as producer:
        number = 0
        while not stop.is_set():
            futures = [
                await producer.enqueue("crash", value_of(writer, number + step), partition=writer % PARTITIONS)
                for step in range(20)
            ]
            await asyncio.gather(*futures)
            acknowledged[writer] += range(number, number + 20)
            number += 20


async def everything(cluster: Cluster) -> dict[int, list[tuple[int, bytes]]]:
    found: dict[int, list[tuple[int, bytes]]] = {}
    for index in range(PARTITIONS):
        reader = RangeReader(cluster, [Span("crash", index)])
        found[index] = [(record.offset, record.value or b"") async for record in reader.records()]
    return found


def check(found: dict[int, list[tuple[int, bytes]]], acknowledged: dict[int, list[int]]) -> None:
    seen: dict[int, list[int]] = {writer: [] for writer in acknowledged}
    for entries in found.values():
        assert [offset for offset, _ in entries] == list(range(len(entries))), "offsets are dense"
        for _, value in entries:
            writer, number, _ = value.split(b" ")
            assert value == value_of(int(writer), int(number)), "content as it was sent"
            seen[int(writer)].append(int(number))
    for writer, numbers in acknowledged.items():
        assert seen[writer] == sorted(set(seen[writer])), f"writer {writer}: duplicated or out of order"
        assert not set(numbers) - set(seen[writer]), f"writer {writer}: acknowledged records are lost"


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_over_kills(tmp_path: Path) -> None:
    rng = random.Random(20261115)
    node = OttlaNode(tmp_path).start()

    async def run() -> None:
        acknowledged: dict[int, list[int]] = {writer: [] for writer in range(4)}
        async with Cluster(node.bootstrap) as cluster:
            await Admin(cluster).topics.create("crash", partitions=PARTITIONS)
            stop = asyncio.Event()
            writers = [asyncio.create_task(write(cluster, writer, acknowledged, stop)) for writer in acknowledged]
            for _ in range(ROUNDS):
                before = sum(map(len, acknowledged.values()))
                while sum(map(len, acknowledged.values())) < before + 200:
                    await asyncio.sleep(0.01)
                    for task in writers:
                        if task.done():
                            task.result()
                await asyncio.sleep(rng.uniform(0, 0.15))
                node.kill()
                await asyncio.to_thread(node.start)
                so_far = {writer: list(done) for writer, done in acknowledged.items()}
                check(await everything(cluster), so_far)
            stop.set()
            await asyncio.gather(*writers)
            check(await everything(cluster), acknowledged)

    try:
        asyncio.run(run())
        node.stop()
        restarted = node.start()
        assert restarted.ready_line
    finally:
        node.stop()


def test_topics_and_configs_survive_a_kill(tmp_path: Path) -> None:
    node = OttlaNode(tmp_path).start()

    async def create() -> None:
        async with Cluster(node.bootstrap) as cluster:
            admin = Admin(cluster)
            await admin.topics.create("kept", partitions=5, configs={"retention.ms": "12345"})
            await admin.topics.create("gone", partitions=1)
            await admin.topics.delete("gone")

    async def look() -> tuple[list[str], int]:
        async with Cluster(node.bootstrap) as cluster:
            return await Admin(cluster).topics.names(), (await cluster.topic("kept")).partition_count

    try:
        asyncio.run(create())
        node.kill()
        node.start()
        assert asyncio.run(look()) == (["kept"], 5)
    finally:
        node.stop()


def test_a_node_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    async def ask() -> None:
        async with Cluster("127.0.0.1:1") as cluster:
            await Admin(cluster).topics.names()

    with pytest.raises((ClientError, ApiError, OSError)):
        asyncio.run(asyncio.wait_for(ask(), 100))
