"""Reading the registry's topic goes on whatever happens."""

import asyncio
import logging

import pytest

from ottla.client.cluster import Cluster
from ottla.client.fetching import ConsumedRecord
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.producer import Producer
from ottla.registry.tail import Tail
from ottla.testing.broker import Broker


def test_a_defect_does_not_end_the_reading(ottla_broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[bytes | None] = []

    def apply(state: list[bytes | None], record: ConsumedRecord) -> None:
        seen.append(record.value)
        if len(seen) == 1:
            raise ZeroDivisionError("a defect")
        state.append(record.value)

    async def test() -> None:
        async with Cluster(ClientOptions(parse_bootstrap(ottla_broker.bootstrap))) as cluster:
            async with Producer(cluster) as producer:
                for value in (b"1", b"2"):
                    await producer.send("t", value, partition=0)
            tail: Tail[list[bytes | None]] = Tail(cluster, "t", list, apply)
            tail.start()
            try:
                await tail.read_to_end()
                assert tail.state == [b"1", b"2"] and tail.reading == 2
            finally:
                await tail.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(test())
    assert seen == [b"1", b"1", b"2"]
    assert "ZeroDivisionError" in caplog.text  # with its place
