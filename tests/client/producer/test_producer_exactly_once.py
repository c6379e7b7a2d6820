"""Exactly once, shown by content: answers get lost between a real broker and a producer with five batches in flight."""

import asyncio
import itertools
import random

import pytest
from tests.client.proxy import LosingProxy, ProxiedCluster
from tests.support.waiting import WAIT_S

from ottla import Cluster, Producer, ProducerOptions, RangeReader, ReadOptions, Span
from ottla.client.admin import Admin
from ottla.client.options import ClientOptions, parse_address, parse_bootstrap
from ottla.records.compress import Codec
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest

_names = (f"exactly-once-{n}" for n in itertools.count())
KAFKA = pytest.param("kafka", marks=pytest.mark.compat)
PARTITIONS = 2


@pytest.fixture
def name() -> str:
    return next(_names)


def bootstrap_of(request: pytest.FixtureRequest, broker: str) -> str:
    return str(request.getfixturevalue("ottla_broker" if broker == "ottla" else "real_kafka").bootstrap)


def losing(bootstrap: str, seed: int, losses: int, **chances: float) -> tuple[LosingProxy, ClientOptions]:
    apis = {
        "produce": ProduceRequest.key,
        "init": InitProducerIdRequest.key,
        "end": EndTxnRequest.key,
        "add": AddPartitionsToTxnRequest.key,
    }
    rng = random.Random(seed)
    proxy = LosingProxy(parse_address(bootstrap), {apis[api]: each for api, each in chances.items()}, losses, rng)
    options = ClientOptions(parse_bootstrap(bootstrap), retry_backoff_ms=5, retry_backoff_max_ms=20, rng=rng)
    return proxy, options


async def read(bootstrap: str, topic: str, options: ReadOptions) -> list[list[bytes | None]]:
    found: list[list[bytes | None]] = []
    async with Cluster(bootstrap) as cluster:
        for partition in range(PARTITIONS):
            async with RangeReader(cluster, [Span(topic, partition)], options) as reader:
                found.append([record.value async for record in reader])
    return found


async def read_to_end(bootstrap: str, topic: str) -> list[list[bytes | None]]:
    """What is committed, up to the record `end`; the coordinator writes its markers after it has answered."""
    async with asyncio.timeout(WAIT_S):
        while True:
            found = await read(bootstrap, topic, ReadOptions(read_committed=True))
            if all(values[-1:] == [b"end"] for values in found):
                return found
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("broker", ["ottla", KAFKA])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_lost_answers_neither_double_nor_reorder(
    request: pytest.FixtureRequest, broker: str, codec: Codec, name: str
) -> None:
    bootstrap = bootstrap_of(request, broker)
    wanted = [[b"%05d" % n for n in range(2_000)] for _ in range(PARTITIONS)]

    async def main() -> None:
        proxy, options = losing(bootstrap, seed=4, losses=12, produce=0.2)
        async with asyncio.timeout(WAIT_S), proxy, ProxiedCluster(options, proxy.address) as cluster:
            await Admin(cluster).topics.create(name, PARTITIONS)
            chosen = ProducerOptions(batch_size_bytes=400, linger_ms=0, codec=codec)
            async with Producer(cluster, chosen) as producer:
                for values in zip(*wanted, strict=True):
                    for partition, value in enumerate(values):
                        await producer.post(name, value, partition=partition)
        assert proxy.lost >= 3
        assert await read(bootstrap, name, ReadOptions()) == wanted

    asyncio.run(main())


@pytest.mark.parametrize("broker", ["ottla", KAFKA])
@pytest.mark.parametrize("seed", range(3))
def test_transactions_survive_lost_answers(request: pytest.FixtureRequest, broker: str, seed: int, name: str) -> None:
    """Every transaction of which the producer says that it is committed is there, whole, once and in its place."""
    bootstrap = bootstrap_of(request, broker)
    wanted: list[list[bytes]] = [[] for _ in range(PARTITIONS)]

    async def main() -> None:
        proxy, options = losing(bootstrap, seed, losses=8, produce=0.15, init=0.5, end=0.2, add=0.2)
        async with asyncio.timeout(WAIT_S), proxy, ProxiedCluster(options, proxy.address) as cluster:
            await Admin(cluster).topics.create(name, PARTITIONS)
            chosen = ProducerOptions(transactional_id=name, batch_size_bytes=200, linger_ms=0)
            async with Producer(cluster, chosen) as producer:
                for number in range(12):
                    async with producer.transaction() as txn:
                        values = [b"%03d-%03d" % (number, n) for n in range(40)]
                        for value, partition in itertools.product(values, range(PARTITIONS)):
                            await producer.post(name, value, partition=partition)
                        if number % 4 == 3:
                            await txn.abort()
                        else:
                            for partition in range(PARTITIONS):
                                wanted[partition] += values
                async with producer.transaction():  # what comes after the others' markers
                    for partition in range(PARTITIONS):
                        await producer.post(name, b"end", partition=partition)
        assert proxy.lost >= 2
        found = await read_to_end(bootstrap, name)
        assert found == [[*values, b"end"] for values in wanted]

    asyncio.run(main())
